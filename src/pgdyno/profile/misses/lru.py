"""Caches with LRU replacement, and the misses of accesses in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pgdyno.base.facts import Unknown
from pgdyno.profile.misses.traces import Accesses, Flags, Numbers
from pgdyno.profile.simulated_caches import Geometry

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
