"""Find PostgreSQL's structure at an address, from a process's mappings and the index of shared memory."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pgdyno.base import numbers
from pgdyno.base.facts import Unknown
from pgdyno.host.processes.memory_mapping import MemoryMapping, SharedArea, SharedMemory

OTHER = "no longer mapped"
OWN = "session's own memory (malloc)"
STACK = "stack"
CONSTANTS = "constants and variables"
DYNAMIC = "dynamic shared memory"
SHARED = "shared memory, not identified"
_LEAST_BLOCK_BYTES = 8192
_NOT_IDENTIFIED = Unknown(
    "parts of shared memory are not identified: this needs PostgreSQL 13 or later, and shared memory among "
    "the session's mappings"
)
FIRST = "main LWLocks"  # allocated before the index of names exists
DESCRIPTORS = "buffer descriptors"
LOOKUP = "buffer lookup table"
LOCKS = "lock tables"
PROCESSES = "PGPROC and proc array"
_STATUS = "transaction status (SLRU)"
_ACTIVITY = "pg_stat_activity"
_BLOCKS = "Buffer Blocks"
_NAMES = {
    _BLOCKS: "pages in shared buffers",
    "Buffer Descriptors": DESCRIPTORS,
    "Shared Buffer Lookup Table": LOOKUP,
    "Buffer Strategy Status": "clock sweep's state",
    "LOCK hash": LOCKS,
    "PROCLOCK hash": LOCKS,
    "Fast Path Strong Relation Lock Data": LOCKS,
    "Fast-Path Lock Array": LOCKS,
    "Proc Header": PROCESSES,
    "PGPROC structures": PROCESSES,
    "Proc Array": PROCESSES,
    "XLOG Ctl": "WAL buffers",
    **dict.fromkeys(("transaction", "subtransaction", "multixact_offset", "multixact_member"), _STATUS),
    **dict.fromkeys(("Xact", "Subtrans", "MultiXactOffset", "MultiXactMember"), _STATUS),  # before version 17
    **dict.fromkeys(("Backend Status Array", "Backend Activity Buffer"), _ACTIVITY),
    "Backend Application Name Buffer": _ACTIVITY,
    "shmInvalBuffer": "invalidation messages",
    "Shared Memory Stats": "cumulative statistics",
}
"""Names in pg_shmem_allocations of versions 13 to 18 -> names familiar to DBAs; others are unchanged."""


@dataclass(frozen=True)
class Region:
    """A range of addresses and its structure."""

    begin: int
    end: int
    structure: str


@dataclass(frozen=True)
class Blocks:
    """The pages of shared buffers."""

    begin: int
    end: int
    block_bytes: int

    def page_of(self, address: int) -> int | None:
        """Return the start of the page that contains an address; None outside shared buffers."""
        if not self.begin <= address < self.end:
            return None
        return address - (address - self.begin) % self.block_bytes


class Structures:
    """The structures of a process's memory by address."""

    def __init__(self, regions: Iterable[Region], blocks: Blocks | Unknown) -> None:
        """Take regions that do not overlap."""
        self._regions = sorted(regions, key=lambda one: one.begin)
        self._begins = [one.begin for one in self._regions]
        self.blocks = blocks

    def of(self, address: int) -> str:
        """Return the structure at an address; for any page of shared buffers, the same general name."""
        place = bisect_right(self._begins, address) - 1
        if place < 0 or address >= self._regions[place].end:
            return OTHER
        return self._regions[place].structure

    def named(self, address: int, kinds: Mapping[int, str]) -> str:
        """Return the structure at an address; ``kinds`` are the kinds of pages by start address."""
        page = None if isinstance(self.blocks, Unknown) else self.blocks.page_of(address)
        return self.of(address) if page is None else kinds.get(page, self.of(address))


def structures_in(mappings: Sequence[MemoryMapping], shared: SharedMemory, program: str) -> Structures:
    """Return the structures of a session under valgrind, which places the stack above all other mappings.

    ``program`` is the path of the server's program. Without names of areas, shared memory is one structure.
    """
    main = max(
        (one for one in mappings if _is_shared(one)), key=lambda one: one.end - one.begin, default=None
    )
    stack = max((one for one in mappings if _is_own(one)), key=lambda one: one.begin, default=None)
    regions = [
        Region(one.begin, one.end, STACK if one is stack else structure)
        for one, structure in _private(mappings, program)
    ]
    others = (one for one in mappings if _is_shared(one) and one is not main)
    regions.extend(Region(one.begin, one.end, DYNAMIC) for one in others)
    if main is None:
        return Structures(regions, _NOT_IDENTIFIED)
    areas = sorted(shared.areas, key=lambda one: one.offset)
    return Structures((*regions, *_of_areas(main, areas)), _blocks(main, areas, shared.block_bytes))


def _is_shared(mapping: MemoryMapping) -> bool:
    return mapping.is_shared and mapping.is_writable


def _is_own(mapping: MemoryMapping) -> bool:
    return not mapping.is_shared and mapping.is_writable and not mapping.path


def _private(mappings: Sequence[MemoryMapping], program: str) -> Iterator[tuple[MemoryMapping, str]]:
    """Yield private mappings with their structures. The program's .bss follows its initialised variables.

    For other files this is ambiguous: valgrind maps at the first free address, so the heap follows the
    variables of ld.so, and large allocations of malloc follow shared memory.
    """
    ends = {one.end for one in mappings if one.path == program and one.is_writable and not one.is_shared}
    for one in mappings:
        if not _is_shared(one):
            yield one, OWN if _is_own(one) and one.begin not in ends else CONSTANTS


def _of_areas(main: MemoryMapping, areas: Sequence[SharedArea]) -> Iterator[Region]:
    """Yield the parts of main shared memory.

    Unnamed memory belongs to the preceding name: a hash table's header has a name, and its entries are
    allocated right after it.
    """
    if not areas:
        yield Region(main.begin, main.end, SHARED)
        return
    yield Region(main.begin, main.begin + areas[0].offset, FIRST)
    for one, following in pairwise(areas):
        yield Region(main.begin + one.offset, main.begin + following.offset, _name(one))
    last = areas[-1]
    end = main.begin + last.offset + last.allocated_bytes
    yield Region(main.begin + last.offset, end, _name(last))
    yield Region(end, main.end, SHARED)


def _name(area: SharedArea) -> str:
    return _NAMES.get(area.name, f"shared memory: {area.name}")


def _blocks(main: MemoryMapping, areas: Sequence[SharedArea], block_bytes: int) -> Blocks | Unknown:
    """Return the pages of shared buffers; Unknown if their addresses or kinds cannot be found.

    Since version 16, the area has 4 kB more, for alignment to 4 kB; with smaller pages that is a whole page.
    """
    area = next((one for one in areas if one.name == _BLOCKS), None)
    if area is None:
        return _NOT_IDENTIFIED
    if block_bytes < _LEAST_BLOCK_BYTES:
        least, found = numbers.size(_LEAST_BLOCK_BYTES), numbers.size(block_bytes)
        return Unknown(f"kinds of pages are identified from {least} on, and this server's have {found}")
    alignment = area.size_bytes % block_bytes or 1
    begin = -(-(main.begin + area.offset) // alignment) * alignment
    return Blocks(begin, begin + area.size_bytes // block_bytes * block_bytes, block_bytes)
