"""A process's memory: its mappings, and its content at given addresses."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from pgdyno.base.facts import Fact
from pgdyno.host.files.tree import Tree
from pgdyno.host.processes.memory_mapping import MemoryMapping

_FIELDS = 5  # before the path


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
    """Return ``size_bytes`` of content from each address on; unreadable addresses are left out."""

    def places_in(memory: BinaryIO) -> dict[int, bytes]:
        return dict(_places(memory, addresses, size_bytes))

    return tree.scan(f"/proc/{pid}/mem", places_in)


def _places(memory: BinaryIO, addresses: Iterable[int], size_bytes: int) -> Iterator[tuple[int, bytes]]:
    for address in addresses:
        try:
            found = os.pread(memory.fileno(), size_bytes, address)
        except OSError:  # not mapped
            continue
        if len(found) == size_bytes:
            yield address, found
