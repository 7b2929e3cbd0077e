"""A postmaster's executable, scheduling policy and memory facts, from /proc.

Only root can read them for another user's process. From the environment, only variables that affect malloc
are kept: others may hold passwords.

An Arm program's kind of atomic operations is detected from its instructions. The helpers of -moutline-atomics
are hidden symbols, which distributions strip. Each helper tests register w16 for LSE support, and branches
past its only LSE instruction without it.

Source: Arm Architecture Reference Manual, A64 encodings of CAS, CASP, SWP, LDADD, LDCLR, LDEOR, LDSET; gcc,
libgcc/config/aarch64/lse.S; LLVM, compiler-rt/lib/builtins/aarch64/lse.S.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.tree import EMPTY, Tree, parsed
from pgdyno.host.processes.elf import AARCH64, read_code
from pgdyno.host.processes.processes import scheduling_policy
from pgdyno.postgres.server import Atomics, Program

_HUGE_PAGES = re.compile(r"^HugetlbPages:\s+(\d+) kB$", re.MULTILINE)
_VARIABLE = re.compile(r"LD_PRELOAD|GLIBC_TUNABLES|(MALLOC|MIMALLOC|TCMALLOC)_\w+")
# By prefix of the library's file name. Libraries that replace libc's malloc come first.
_ALLOCATORS = {
    "libjemalloc": "jemalloc",
    "libmimalloc": "mimalloc",
    "libtcmalloc": "tcmalloc",
    "ld-musl": "musl",
    "libc.musl": "musl",
    "libc.so.6": "glibc",
    "libc-2.": "glibc",  # until 2.33
}
_WORD_BYTES = 4  # every instruction, aligned and with its least significant byte first
_LSE = (  # mask, value
    (0x3FA07C00, 0x08A07C00),  # CAS
    (0xBFA07C00, 0x08207C00),  # CASP
    (0x3F20FC00, 0x38208000),  # SWP
    (0x3F20CC00, 0x38200000),  # LDADD, LDCLR, LDEOR, LDSET
)
_SKIP_IF_W16_IS_ZERO = (0xFF00001F, 0x34000010)  # CBZ
# The possible most significant bytes of these instructions: a fast filter that keeps a few per cent of code.
_CANDIDATE = re.compile(rb"[\x08\x48\x88\xc8\x38\x78\xb8\xf8]")


def inspect_program(root: Path, pid: int) -> Program:
    """Return the facts about a postmaster's program; ``pid`` is its process id on the host at ``root``."""
    return program_of(Tree(root), pid)


def program_of(tree: Tree, pid: int) -> Program:
    """Return the facts about a postmaster's program on the host with the file tree ``tree``."""
    return Program(
        atomics=tree.scan(f"/proc/{pid}/exe", read_atomics),
        allocator=tree.read(f"/proc/{pid}/maps", allocator_in),
        malloc_variables=_malloc_variables(tree.text(f"/proc/{pid}/environ")),
        scheduling_policy=tree.read(f"/proc/{pid}/stat", scheduling_policy),
        has_huge_pages=tree.read(f"/proc/{pid}/status", has_huge_pages),
    )


def allocator_in(maps: str) -> str | Unknown:
    """Return a process's malloc implementation, by the libraries in /proc/PID/maps (proc_pid_maps(5))."""
    files = {line.rpartition("/")[2] for line in maps.splitlines() if "/" in line}
    for beginning, name in _ALLOCATORS.items():
        if any(file.startswith(beginning) for file in files):
            return name
    return Unknown("no C library is mapped")


def variables_in(environment: str) -> dict[str, str]:
    """Return the variables in /proc/PID/environ that affect malloc."""
    pairs = (entry.partition("=") for entry in environment.split("\0"))
    return {name: value for name, _, value in pairs if _VARIABLE.fullmatch(name)}


def has_huge_pages(status: str) -> bool | Unknown:
    """Return whether a process has touched explicit huge pages, by /proc/PID/status (since Linux 4.4)."""
    found = _HUGE_PAGES.search(status)
    return Unknown("this kernel does not report it") if found is None else found[1] != "0"


def _malloc_variables(environment: Fact[str]) -> Fact[dict[str, str]]:
    if environment.value == EMPTY:
        return Fact({}, environment.source)
    return parsed(environment, variables_in)


def read_atomics(file: BinaryIO) -> Atomics | Unknown:
    """Count the LSE instructions of a program."""
    code = read_code(file, AARCH64)
    return code if isinstance(code, Unknown) else count_atomics(code)


def count_atomics(code: bytes) -> Atomics:
    """Count the LSE instructions in code: in outline helpers, and all others."""
    in_helpers = Counter(_is(code, place - 1, _SKIP_IF_W16_IS_ZERO) for place in _lse_instructions(code))
    return Atomics(inline=in_helpers[False], outline=in_helpers[True])


def _lse_instructions(code: bytes) -> Iterator[int]:
    """Yield the offsets of LSE instructions, in words."""
    for match in _CANDIDATE.finditer(code[_WORD_BYTES - 1 :: _WORD_BYTES]):
        if any(_is(code, match.start(), pattern) for pattern in _LSE):
            yield match.start()


def _is(code: bytes, place: int, pattern: tuple[int, int]) -> bool:
    mask, value = pattern
    start = max(place, 0) * _WORD_BYTES
    return int.from_bytes(code[start : start + _WORD_BYTES], "little") & mask == value
