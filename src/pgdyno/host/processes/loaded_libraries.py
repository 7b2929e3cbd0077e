"""Libraries in a running program, and loader variables in its environment.

A library loaded before the C library can put functions of its own in place of ``fsync`` and the like
(ld.so(8), LD_PRELOAD): the program then reports as written what is not. Symbols show that, whatever the
library is called and however it got in.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from pgdyno.host.files.tree import EMPTY, Tree
from pgdyno.host.processes.elf import defined_functions
from pgdyno.model.facts import Unknown

_C_LIBRARY = re.compile(
    r"/(usr/)?lib(32|64)?(/[\w.-]+-linux-[\w.-]+)?"
    r"/(libc\.so\.6|libc-2\.\d+\.so|libpthread[.-][\w.]+|librt[.-][\w.]+|ld-linux[\w.-]*|ld-2\.\d+\.so"
    r"|(ld-musl|libc\.musl)-[\w.]+|libc\.so)"
)
"""The C library's own files, where distributions keep them; libpthread had fsync until glibc 2.34."""

_LOADER_VARIABLE = re.compile(r"LD_\w+")
_OF_FILES = ("LD_PRELOAD", "LD_AUDIT")
_CHECKSUM_LENGTH = 12  # characters: enough to tell values apart


@dataclass(frozen=True)
class LoadedLibraries:
    """Loader variables and replaced functions of one process.

    ``loader`` has the loader's variables: names of files, or a checksum of the value, which may be private.
    ``replaced`` has the functions asked for that libraries define, by the library's file name. ``unknown``
    names what could not be looked at, and why.
    """

    loader: dict[str, str] = field(default_factory=dict)
    replaced: dict[str, tuple[str, ...]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()


def inspect_libraries(tree: Tree, pid: int, functions: Collection[str]) -> LoadedLibraries:
    """Return a process's loader variables, and the libraries defining ``functions``.

    The C library is left out.
    """
    environment, maps = tree.text(f"/proc/{pid}/environ"), tree.text(f"/proc/{pid}/maps")
    unknown = [
        f"{fact.source}: {fact.value.reason}"
        for fact in (environment, maps)
        if isinstance(fact.value, Unknown) and fact.value != EMPTY
    ]
    replaced: dict[str, tuple[str, ...]] = {}
    for path in mapped_programs(maps.or_else("")):
        if _C_LIBRARY.fullmatch(path):
            continue
        found = tree.scan(f"/proc/{pid}/root{path}", lambda file: defined_functions(file, functions)).value
        if isinstance(found, Unknown):
            unknown.append(f"{os.path.basename(path)}: {found.reason}")  # noqa: PTH119 — the kernel's text
        elif found:
            replaced[os.path.basename(path)] = tuple(sorted(found))  # noqa: PTH119
    return LoadedLibraries(loader_variables(environment.or_else("")), replaced, tuple(unknown))


def mapped_programs(maps: str) -> tuple[str, ...]:
    """Return the files of code in /proc/PID/maps, each once; format: proc_pid_maps(5)."""
    return tuple(dict.fromkeys(_code_files(maps)))


def loader_variables(environment: str) -> dict[str, str]:
    """Return the variables of /proc/PID/environ that concern the dynamic loader, without directories."""
    pairs = (entry.partition("=") for entry in environment.split("\0"))
    return {name: _shown(name, value) for name, _, value in pairs if _LOADER_VARIABLE.fullmatch(name)}


def _code_files(maps: str) -> Iterator[str]:
    for line in maps.splitlines():
        parts = line.split(maxsplit=5)
        if len(parts) == 6 and "x" in parts[1] and parts[5].startswith("/"):
            yield parts[5]


def _shown(name: str, value: str) -> str:
    if name in _OF_FILES:
        return " ".join(part.rpartition("/")[2] for part in re.split(r"[ :]+", value) if part)
    return "sha256:" + hashlib.sha256(value.encode(errors="replace")).hexdigest()[:_CHECKSUM_LENGTH]
