"""The memory of a server's process: its mappings, and the named parts of shared memory."""

from __future__ import annotations

from dataclasses import dataclass


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
