"""Count misses by line and instruction, and add them up by structure.

A data page's header and its end identify its kind. Source: src/include/storage/bufpage.h (the header), and
the special space at the end of index pages. The last two bytes distinguish the index types, as in
pg_filedump: those of B-trees are deliberately below those of the others (nbtree.h).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.host.processes.elf import CodeSegment
from pgdyno.host.processes.memory_mapping import MemoryMapping
from pgdyno.profile.misses.lru import SplitCaches
from pgdyno.profile.misses.traces import Accesses, accesses_in
from pgdyno.profile.records.microarchitecture import StructureMisses

OTHERS = "others"
_LEAST_SHARE = 0.005
_MOST_FUNCTIONS = 3
_LEAST_OF_STRUCTURE = 0.05
Place = tuple[int, int]
"""The address of a line of data, and of an instruction."""
Naming = Callable[[int], str]
"""From an address to a name."""
TABLE = "table pages"
BTREE = "B-tree pages"
OTHER_INDEX = "pages of other indexes"
MAP = "free space, visibility maps"
UNKNOWN_PAGE = "pages of unknown kind"
_HEAD = struct.Struct("<QHHHHHHI")  # pd_lsn, checksum, flags, lower, upper, special, size and version, xid
_SIZE_BITS = 0xFF00
_BTREE_BYTES = 16
_LARGEST_BTREE_CYCLE = 0xFF7F  # MAX_BT_CYCLE_ID


@dataclass(frozen=True)
class LoadedProgram:
    """A process's program; ``functions`` are by link-time address, before relocation."""

    path: str
    functions: Mapping[int, str]
    segments: Sequence[CodeSegment]
    mappings: Sequence[MemoryMapping]

    def function_at(self, address: int) -> str:
        """Return the function at an instruction's address; for a library's code, the library's file name."""
        mapping = next((one for one in self.mappings if one.has(address) and one.path), None)
        if mapping is None:
            return ""
        if mapping.path != self.path:
            return Path(mapping.path).name
        offset = address - mapping.begin + mapping.offset
        places = (one.address_of(offset) for one in self.segments)
        return next((self.functions.get(place, "") for place in places if place is not None), "")


@dataclass
class Tally:
    """Misses of the first level and of both levels, by place, and the number of instructions."""

    l1d: Counter[Place] = field(default_factory=Counter)
    l2: Counter[Place] = field(default_factory=Counter)
    instructions: int = 0

    def take(self, accesses: Accesses, caches: SplitCaches) -> None:
        """Add the misses of accesses; the caches keep their contents between calls."""
        self.instructions += int(accesses.is_code.sum())
        missed = caches.take(accesses)
        addresses = (missed.lines * caches.line_bytes).tolist()
        places = list(zip(addresses, missed.instructions.tolist(), strict=True))
        self.l1d.update(places)
        self.l2.update(places[at] for at in missed.in_neither.tolist())


def tally(pieces: Iterable[bytes], caches: SplitCaches) -> Tally:
    """Return the misses of a trace; a piece may end within a line."""
    found = Tally()
    for accesses in accesses_in(pieces):
        found.take(accesses, caches)
    return found


def by_structure(
    found: Tally, structure_of: Naming, function_of: Naming, transactions: int
) -> tuple[StructureMisses, ...]:
    """Return misses per transaction by structure, most first; rare structures are added up at the end."""
    l1d, l2 = (_misses_by_structure(counts, structure_of) for counts in (found.l1d, found.l2))
    functions: dict[str, Counter[str]] = {}
    for (address, instruction), count in found.l1d.items():
        functions.setdefault(structure_of(address), Counter())[function_of(instruction)] += count
    rows = [
        StructureMisses(name, count / transactions, l2[name] / transactions, _most(functions[name]))
        for name, count in l1d.most_common()
    ]
    least = _LEAST_SHARE * sum(one.l1d for one in rows), _LEAST_SHARE * sum(one.l2 for one in rows)
    shown = [one for one in rows if one.l1d >= least[0] or one.l2 > least[1]]
    rare = [one for one in rows if one not in shown]
    if rare:
        shown.append(StructureMisses(OTHERS, sum(one.l1d for one in rare), sum(one.l2 for one in rare)))
    return tuple(shown)


def _misses_by_structure(counts: Counter[Place], structure_of: Naming) -> Counter[str]:
    found: Counter[str] = Counter()
    for (address, _), count in counts.items():
        found[structure_of(address)] += count
    return found


def _most(functions: Counter[str]) -> tuple[str, ...]:
    least = _LEAST_OF_STRUCTURE * functions.total()
    most = functions.most_common(_MOST_FUNCTIONS)
    return tuple(name for name, count in most if name and count >= least)


def page_kind(page: bytes) -> str:
    """Return the kind of a page of a little-endian server."""
    _, _, _, lower, _, special, size_version, _ = _HEAD.unpack_from(page)
    if size_version & _SIZE_BITS != len(page) & _SIZE_BITS or not _HEAD.size <= special <= len(page):
        return UNKNOWN_PAGE
    if special == len(page):  # tables and maps; only tables have line pointers
        return TABLE if lower > _HEAD.size else MAP
    is_btree = len(page) - special == _BTREE_BYTES and _last(page) <= _LARGEST_BTREE_CYCLE
    return BTREE if is_btree else OTHER_INDEX


def _last(page: bytes) -> int:
    return int.from_bytes(page[-2:], "little")
