"""Program of a postmaster, its scheduling, and externally visible memory facts.

Of another user's process only root sees this. Nothing else of the environment is kept: it may hold passwords.
"""

from __future__ import annotations

import re
from pathlib import Path

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.tree import EMPTY, Tree, parsed
from pgdyno.host.processes.processes import scheduling_policy
from pgdyno.postgres.inspection.atomics import read_atomics
from pgdyno.postgres.server import Program

_HUGE_PAGES = re.compile(r"^HugetlbPages:\s+(\d+) kB$", re.MULTILINE)
_VARIABLE = re.compile(r"LD_PRELOAD|GLIBC_TUNABLES|(MALLOC|MIMALLOC|TCMALLOC)_\w+")

# Libraries by what their files' names begin with; those that replace libc's malloc come first.
_ALLOCATORS = {
    "libjemalloc": "jemalloc",
    "libmimalloc": "mimalloc",
    "libtcmalloc": "tcmalloc",
    "ld-musl": "musl",
    "libc.musl": "musl",
    "libc.so.6": "glibc",
    "libc-2.": "glibc",  # until 2.33
}


def inspect_program(root: Path, pid: int) -> Program:
    """Return the facts about a postmaster's program.

    ``pid`` is its process id on the host below ``root``.
    """
    return program_of(Tree(root), pid)


def program_of(tree: Tree, pid: int) -> Program:
    """Do the same for a host whose files are reached in a way of their own."""
    return Program(
        atomics=tree.scan(f"/proc/{pid}/exe", read_atomics),
        allocator=tree.read(f"/proc/{pid}/maps", allocator_in),
        malloc_variables=_malloc_variables(tree.text(f"/proc/{pid}/environ")),
        scheduling_policy=tree.read(f"/proc/{pid}/stat", scheduling_policy),
        has_huge_pages=tree.read(f"/proc/{pid}/status", has_huge_pages),
    )


def allocator_in(maps: str) -> str | Unknown:
    """Tell whose malloc a process uses by the libraries in /proc/PID/maps; format: proc_pid_maps(5)."""
    files = {line.rpartition("/")[2] for line in maps.splitlines() if "/" in line}
    for beginning, name in _ALLOCATORS.items():
        if any(file.startswith(beginning) for file in files):
            return name
    return Unknown("no C library is mapped")


def variables_in(environment: str) -> dict[str, str]:
    """Return the variables of /proc/PID/environ that concern malloc."""
    pairs = (entry.partition("=") for entry in environment.split("\0"))
    return {name: value for name, _, value in pairs if _VARIABLE.fullmatch(name)}


def has_huge_pages(status: str) -> bool | Unknown:
    """Tell by /proc/PID/status whether a process has touched explicit huge pages; since Linux 4.4."""
    found = _HUGE_PAGES.search(status)
    return Unknown("this kernel does not report it") if found is None else found[1] != "0"


def _malloc_variables(environment: Fact[str]) -> Fact[dict[str, str]]:
    if environment.value == EMPTY:
        return Fact({}, environment.source)
    return parsed(environment, variables_in)
