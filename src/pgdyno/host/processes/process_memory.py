"""The memory of a process: its mappings, and its content at some addresses."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from pgdyno.base.facts import Fact
from pgdyno.host.files.tree import Tree

_FIELDS = 5  # before the path


@dataclass(frozen=True)
class MemoryMapping:
    """A range of addresses, and the file that it shows from an offset on; ``path`` is empty without one."""

    begin: int
    end: int
    is_writable: bool
    is_shared: bool
    offset: int = 0
    path: str = ""

    def has(self, address: int) -> bool:
        """Whether an address is in it."""
        return self.begin <= address < self.end


@dataclass(frozen=True)
class SharedArea:
    """A named part of main shared memory, as pg_shmem_allocations has it.

    ``size_bytes`` were requested, ``allocated_bytes`` are taken.
    """

    name: str
    offset: int
    size_bytes: int
    allocated_bytes: int


@dataclass(frozen=True)
class SharedMemory:
    """The named parts of main shared memory, and the size of a page of data."""

    areas: tuple[SharedArea, ...]
    block_bytes: int


def read_mappings(tree: Tree, pid: int) -> Fact[tuple[MemoryMapping, ...]]:
    """Return a process's mappings in the order of their addresses."""
    return tree.read(f"/proc/{pid}/maps", lambda maps: tuple(mappings_in(maps)))


def mappings_in(maps: str) -> Iterator[MemoryMapping]:
    """Yield the mappings in /proc/PID/maps; format: proc_pid_maps(5)."""
    for line in maps.splitlines():
        place, permissions, offset, *rest = line.split(maxsplit=_FIELDS)
        begin, end = (int(address, 16) for address in place.split("-"))
        path = rest[2] if len(rest) > 2 else ""
        yield MemoryMapping(begin, end, "w" in permissions, "s" in permissions, int(offset, 16), path)


def read_places(tree: Tree, pid: int, addresses: Iterable[int], size_bytes: int) -> Fact[dict[int, bytes]]:
    """Return the content from each address on; those that cannot be read are missing."""

    def places_in(memory: BinaryIO) -> dict[int, bytes]:
        return dict(_places(memory, addresses, size_bytes))

    return tree.scan(f"/proc/{pid}/mem", places_in)


def _places(memory: BinaryIO, addresses: Iterable[int], size_bytes: int) -> Iterator[tuple[int, bytes]]:
    for address in addresses:
        try:
            found = os.pread(memory.fileno(), size_bytes, address)
        except OSError:  # it is not mapped
            continue
        if len(found) == size_bytes:
            yield address, found
