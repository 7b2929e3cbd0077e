"""Environment variables that a variant may set for its server: those of memory allocators. Pure.

All others are refused: PG* redirect connections, LD_* load code, and no other kind has been measured.

Source: glibc, mallopt(3) and ld.so(8), "GLIBC_TUNABLES"; jemalloc(3), "TUNING"; mimalloc's readme,
"Environment Options"; gperftools, docs/tcmalloc.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

PRELOAD = "LD_PRELOAD"

_TUNABLE = r"glibc\.(malloc\.[a-z_]+=[0-9a-zA-Z]+|pthread\.rseq=[01])"
_OPTION = r"(?!prof)[a-z_]+(:[A-Za-z0-9_.:|-]*)?"  # jemalloc writes files for options that begin with "prof"
_PLAIN = re.compile(r"[A-Za-z0-9_.:%+-]*")  # no path: some name files to write

_ALLOWED: Mapping[re.Pattern[str], tuple[re.Pattern[str], str]] = MappingProxyType(
    {
        re.compile(PRELOAD): (
            re.compile(r"lib(jemalloc|mimalloc(-secure)?|tcmalloc(_minimal)?)\.so(\.[0-9]+)*"),
            "only a known allocator may be preloaded, by its plain name: libjemalloc.so.2",
        ),
        re.compile("GLIBC_TUNABLES"): (
            re.compile(rf"{_TUNABLE}(:{_TUNABLE})*"),
            "only tunables of glibc.malloc and glibc.pthread.rseq are valid: glibc.malloc.arena_max=2",
        ),
        re.compile(r"(JE_)?MALLOC_CONF"): (
            re.compile(rf"{_OPTION}(,{_OPTION})*"),
            "options of jemalloc are name:value; those of its profiler, which writes files, are refused",
        ),
        re.compile(
            r"MALLOC_(ARENA_MAX|ARENA_TEST|CHECK_|MMAP_MAX_|MMAP_THRESHOLD_|PERTURB_|TOP_PAD_|TRIM_THRESHOLD_)"
        ): (re.compile(r"[0-9]+"), "it must be a number"),
        re.compile(r"MIMALLOC_[A-Z0-9_]+|TCMALLOC_[A-Z0-9_]+"): (_PLAIN, "it must not be a path"),
    }
)
"""Names, permitted values, and the reason for refusing all others."""


def why_not_given(name: str, value: str) -> str | None:
    """Return why a variant may not set this environment variable; None if it may."""
    for names, (values, otherwise) in _ALLOWED.items():
        if names.fullmatch(name):
            return None if values.fullmatch(value) else otherwise
    return "only variables of memory allocators are valid: MALLOC_ARENA_MAX, GLIBC_TUNABLES, MALLOC_CONF, …"
