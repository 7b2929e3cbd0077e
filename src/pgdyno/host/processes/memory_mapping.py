"""A server process's memory: its mappings, and the named allocations in shared memory."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MemoryMapping:
    """An address range, and the file mapped there from ``offset`` on; ``path`` is empty without a file."""

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
    """A named allocation in main shared memory, as in pg_shmem_allocations.

    ``size_bytes`` is the requested size, ``allocated_bytes`` the size including padding.
    """

    name: str
    offset: int
    size_bytes: int
    allocated_bytes: int


@dataclass(frozen=True)
class SharedMemory:
    """The named allocations in main shared memory, and the size of a data page."""

    areas: tuple[SharedArea, ...]
    block_bytes: int
