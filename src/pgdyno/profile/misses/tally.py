"""Parse memory accesses, count their misses in caches with LRU replacement, and add them up by structure.

A data page's header and its end identify its kind. Source: src/include/storage/bufpage.h (the header), and
the special space at the end of index pages. The last two bytes distinguish the index types, as in
pg_filedump: those of B-trees are deliberately below those of the others (nbtree.h).

``valgrind --tool=lackey --trace-mem=yes`` writes the accesses. A line ``I  04a2a353,6`` is an instruction.
Each of its loads follows as a line ``_L 1ffefff788,8``, with a space for _; ``S`` is a store, ``M`` a load
and store at one address. Addresses are hexadecimal, sizes decimal. Source: valgrind's manual, "Lackey: an
example tool". About half a million lines are parsed at once, with arrays.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pgdyno.base.facts import Unknown
from pgdyno.host.processes.elf import CodeSegment
from pgdyno.host.processes.memory_mapping import MemoryMapping
from pgdyno.profile.records.microarchitecture import StructureMisses
from pgdyno.profile.simulated_caches import Geometry

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


_LEVELS = ("L1i", "L1d", "L2")
_MOST_WAYS = 64  # real caches have up to 24; a virtual machine may report anything, and lookups scan all ways


@dataclass
class LruCache:
    """A set-associative cache with LRU replacement: ``sets``, a power of two, of ``ways`` lines each."""

    sets: int
    ways: int
    _lines: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self._lines = [[] for _ in range(self.sets)]

    def take(self, lines: Numbers) -> Numbers:
        """Access lines in order, and return the positions of the misses.

        Sets are independent: the accesses are processed set by set, and an immediate repetition of a line
        within its set is skipped.
        """
        order = np.argsort(lines & (self.sets - 1), kind="stable")
        by_set = lines[order]
        is_new = np.ones(len(lines), dtype=np.bool_)
        is_new[1:] = by_set[1:] != by_set[:-1]
        missed = []
        for place, line in zip(order[is_new].tolist(), by_set[is_new].tolist(), strict=True):
            kept = self._lines[line & (self.sets - 1)]
            if line in kept:
                if kept[-1] != line:
                    kept.remove(line)
                    kept.append(line)
                continue
            missed.append(place)
            kept.append(line)
            if len(kept) > self.ways:
                del kept[0]
        return np.array(sorted(missed), dtype=np.int64)


@dataclass(frozen=True)
class Missed:
    """Lines of data that missed the first level, and the addresses of the instructions.

    ``in_neither`` are the positions of those that missed the second level too.
    """

    lines: Numbers
    instructions: Numbers
    in_neither: Numbers


@dataclass
class SplitCaches:
    """First-level caches for instructions and for data, and a common second level; equal line sizes.

    An access across a line boundary counts as one access to each line. The second level is accessed on a miss
    in the first level, and then holds the line.
    """

    code: LruCache
    data: LruCache
    second: LruCache
    line_bytes: int
    _last_instruction: int = field(default=0, init=False)

    def take(self, accesses: Accesses) -> Missed:
        """Perform accesses in order, and return the data misses."""
        first = accesses.addresses // self.line_bytes
        last = (accesses.addresses + np.maximum(accesses.sizes, 1) - 1) // self.line_bytes
        across = np.flatnonzero(last != first)
        lines = np.insert(first, across + 1, last[across])
        is_code = np.insert(accesses.is_code, across + 1, accesses.is_code[across])
        addresses = np.insert(accesses.addresses, across + 1, accesses.addresses[across])
        of_code, of_data = np.flatnonzero(is_code), np.flatnonzero(~is_code)
        missed_code = of_code[self.code.take(lines[of_code])]
        missed_data = of_data[self.data.take(lines[of_data])]
        missed_first = np.sort(np.concatenate((missed_code, missed_data)))
        missed_both = missed_first[self.second.take(lines[missed_first])]
        return Missed(
            lines[missed_data],
            self._instructions(is_code, addresses)[missed_data],
            np.flatnonzero(np.isin(missed_data, missed_both)),
        )

    def _instructions(self, is_code: Flags, addresses: Numbers) -> Numbers:
        """Return the address of each access's instruction: the last instruction before the access."""
        places = np.maximum.accumulate(np.where(is_code, np.arange(len(addresses)), -1))
        found = np.where(places >= 0, addresses[places], self._last_instruction)
        if len(found):
            self._last_instruction = int(found[-1])
        return found


def split_caches(known: Sequence[Geometry]) -> SplitCaches | Unknown:
    """Return empty caches L1i, L1d and L2; Unknown if their geometry is missing or unsupported."""
    if len(known) < len(_LEVELS) or any(one.ways > _MOST_WAYS for one in known):
        return Unknown("this machine does not report the geometry of its caches")
    line_bytes = {one.line_bytes for one in known}
    if len(line_bytes) > 1:
        return Unknown("this processor's caches have different line sizes")
    code, data, second = (
        next(LruCache(one.sets, one.ways) for one in known if one.name == name) for name in _LEVELS
    )
    return SplitCaches(code, data, second, line_bytes.pop())


Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_BEFORE_ADDRESS = 3  # characters before an address
_SHORTEST = _BEFORE_ADDRESS + 10  # an address of at least eight digits, a comma, and a size of at least one
_MOST_DIGITS, _MOST_SIZE_DIGITS = (
    15,
    3,
)  # limit of signed 64-bit numbers; sizes are at most some hundred
_INSTRUCTION, _SPACE, _COMMA, _NEW_LINE, _ZERO = b"I ,\n0"
_DATA = np.zeros(256, dtype=np.bool_)
_DATA[list(b"LSM")] = True
_DIGITS = np.zeros(256, dtype=np.int64)
for _place, _digit in enumerate(b"0123456789abcdef"):
    _DIGITS[_digit] = _place


@dataclass(frozen=True)
class Accesses:
    """Accesses in order: whether each is an instruction fetch, its address, and its size in bytes."""

    is_code: Flags
    addresses: Numbers
    sizes: Numbers

    def part(self, begin: int, end: int) -> Accesses:
        """Return the accesses from position ``begin`` up to ``end``."""
        return Accesses(self.is_code[begin:end], self.addresses[begin:end], self.sizes[begin:end])


def accesses_in(pieces: Iterable[bytes]) -> Iterator[Accesses]:
    """Yield the accesses of a trace; a piece may end within a line."""
    rest = b""
    for piece in pieces:
        lines, end, rest = (rest + piece).rpartition(b"\n")
        yield parse_accesses(lines + end)


def parse_accesses(lines: bytes) -> Accesses:
    """Return the accesses in whole lines; valgrind's own messages are skipped."""
    text = np.frombuffer(lines, dtype=np.uint8)
    ends = np.flatnonzero(text == _NEW_LINE)
    starts = np.concatenate((np.zeros(min(1, len(ends)), dtype=np.int64), ends[:-1] + 1))
    is_long = ends - starts >= _SHORTEST
    starts, ends = starts[is_long], ends[is_long]
    first, second = text[starts], text[starts + 1]
    is_code = (first == _INSTRUCTION) & (second == _SPACE)
    commas = _commas(text, ends)
    is_access = (is_code | ((first == _SPACE) & _DATA[second])) & (commas >= 0)
    starts, ends, commas = starts[is_access], ends[is_access], commas[is_access]
    return Accesses(
        is_code[is_access],
        _parse_numbers(text, starts + _BEFORE_ADDRESS, commas, base=16, most=_MOST_DIGITS),
        _parse_numbers(text, commas + 1, ends, base=10, most=_MOST_SIZE_DIGITS),
    )


def _commas(text: Bytes, ends: Numbers) -> Numbers:
    """Return the position of each line's comma, before the size; −1 for a line without one."""
    commas = np.full(len(ends), -1, dtype=np.int64)
    for digits in range(1, _MOST_SIZE_DIGITS + 1):
        at = ends - digits - 1
        commas = np.where((commas < 0) & (text[at] == _COMMA), at, commas)
    return commas


def _parse_numbers(text: Bytes, begins: Numbers, ends: Numbers, *, base: int, most: int) -> Numbers:
    numbers = np.zeros(len(begins), dtype=np.int64)
    longest = min(most, int((ends - begins).max(initial=0)))
    for place in range(longest):
        at = ends - 1 - place
        numbers += np.where(at >= begins, _DIGITS[text[at]], 0) * base**place
    return numbers
