"""Caches that evict the line which was not used for longest, and the misses of accesses in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pgdyno.base.facts import Unknown
from pgdyno.profile.misses.traces import Accesses, Flags, Numbers
from pgdyno.profile.simulated_caches import Geometry

_LEVELS = ("L1i", "L1d", "L2")
_MOST_WAYS = (
    64  # real ones have up to 24; a virtual machine may tell anything, and all ways are looked through
)


@dataclass
class LruCache:
    """A cache of sets, a power of two of them, with a number of lines each, in the order of their use."""

    sets: int
    ways: int
    _lines: list[list[int]] = field(init=False)

    def __post_init__(self) -> None:
        self._lines = [[] for _ in range(self.sets)]

    def take(self, lines: Numbers) -> Numbers:
        """Use lines in their order, and return the places of those that were not there.

        Sets have nothing to do with each other: each one's lines are taken together, and a line that follows
        itself there changes nothing.
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
    """Lines of data that were not in the first cache, and the addresses of the instructions.

    ``in_neither`` are the places of those that were not in the second one either.
    """

    lines: Numbers
    instructions: Numbers
    in_neither: Numbers


@dataclass
class SplitCaches:
    """A first cache for instructions, one for data, and a second one behind both; all have lines of a size.

    An access that goes over the end of a line is one to each of the two. The second one is asked for a line
    that the first one did not have, and keeps it.
    """

    code: LruCache
    data: LruCache
    second: LruCache
    line_bytes: int
    _last_instruction: int = field(default=0, init=False)

    def take(self, accesses: Accesses) -> Missed:
        """Take accesses in their order, and return the data that was missed."""
        first = accesses.addresses // self.line_bytes
        last = (accesses.addresses + np.maximum(accesses.sizes, 1) - 1) // self.line_bytes
        across = np.flatnonzero(last != first)
        lines = np.insert(first, across + 1, last[across])
        is_code = np.insert(accesses.is_code, across + 1, accesses.is_code[across])
        addresses = np.insert(accesses.addresses, across + 1, accesses.addresses[across])
        of_code, of_data = np.flatnonzero(is_code), np.flatnonzero(~is_code)
        missed_code = of_code[self.code.take(lines[of_code])]
        missed_data = of_data[self.data.take(lines[of_data])]
        asked = np.sort(np.concatenate((missed_code, missed_data)))
        missed_twice = asked[self.second.take(lines[asked])]
        return Missed(
            lines[missed_data],
            self._instructions(is_code, addresses)[missed_data],
            np.flatnonzero(np.isin(missed_data, missed_twice)),
        )

    def _instructions(self, is_code: Flags, addresses: Numbers) -> Numbers:
        """Return for each access the address of the instruction that it belongs to: the one before it."""
        places = np.maximum.accumulate(np.where(is_code, np.arange(len(addresses)), -1))
        found = np.where(places >= 0, addresses[places], self._last_instruction)
        if len(found):
            self._last_instruction = int(found[-1])
        return found


def split_caches(known: Sequence[Geometry]) -> SplitCaches | Unknown:
    """Return empty caches of L1i, L1d and L2; or why there are none."""
    if len(known) < len(_LEVELS) or any(one.ways > _MOST_WAYS for one in known):
        return Unknown("this machine does not tell the geometry of its caches")
    line_bytes = {one.line_bytes for one in known}
    if len(line_bytes) > 1:
        return Unknown("the lines of this processor's caches are not of one size")
    code, data, second = (
        next(LruCache(one.sets, one.ways) for one in known if one.name == name) for name in _LEVELS
    )
    return SplitCaches(code, data, second, line_bytes.pop())
