"""Distribution of a column's values as ordered segments: common values, and the ranges between them.

``rank`` counts rows in the order of their values, from 0; ``ordinal`` counts distinct values in order. A
value on its scale is an integer or a float; ranges are half-open, from ``low`` up to but excluding ``high``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pgdyno.workload.synthesis.ordering import Integers

_ANY = 1 << 40  # arbitrary: more values than rows


@dataclass(frozen=True)
class Places:
    """Positions of ranks in a distribution. Shapes: all (n,).

    ``segment`` is the segment's number, ``within`` the number of the distinct value within it, ``ordinal``
    its number among all distinct values. ``repeat`` numbers the ``repeats`` rows with the same value.
    """

    segment: Integers
    within: Integers
    ordinal: Integers
    repeat: Integers
    repeats: Integers


@dataclass(frozen=True)
class Distribution:
    """Segments in the order of their values. Shapes: all (segments,).

    Each has ``counts`` rows and ``distinct`` values, evenly spaced between ``lows`` and ``highs``. The type
    of these two shows whether values are integers.
    """

    counts: Integers
    distinct: Integers
    lows: NDArray[np.generic]
    highs: NDArray[np.generic]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.counts.sum())

    @property
    def values(self) -> int:
        """Number of distinct values."""
        return int(self.distinct.sum())

    @property
    def largest_repeat(self) -> int:
        """Maximum number of rows with the same value."""
        return int(np.max(-(-self.counts // self.distinct), initial=1))

    def concentration(self, power: int) -> float:
        """Return the sum of a power of the frequencies of all values."""
        each = self.counts / self.distinct / max(1, self.rows)
        return float(np.sum(self.distinct * each**power))

    def places(self, ranks: Integers) -> Places:
        """Return the places of ranks. A segment's rows are spread over its values as evenly as possible."""
        ends = np.cumsum(self.counts)
        segment = np.searchsorted(ends, ranks, side="right").astype(np.int64)
        row = ranks - (ends - self.counts)[segment]
        share, more = (
            self.counts[segment] // self.distinct[segment],
            self.counts[segment] % self.distinct[segment],
        )
        longer = more * (share + 1)  # rows of values with one row more than the others
        is_longer = row < longer
        within = np.where(is_longer, row // (share + 1), more + (row - longer) // share)
        repeat = np.where(is_longer, row % (share + 1), (row - longer) % share)
        before = (np.cumsum(self.distinct) - self.distinct)[segment]
        return Places(segment, within, before + within, repeat, share + is_longer)

    def rank_of(self, value: float) -> int:
        """Return the rank of a value, or the rank that it would have."""
        segment = int(np.searchsorted(self.highs, value, side="right"))
        if segment and self.lows[segment - 1] == self.highs[segment - 1] == value:
            segment -= 1  # a common value at the end of the previous range
        if segment == len(self.counts):
            return max(0, self.rows - 1)
        before, low, high = int(self.counts[:segment].sum()), self.lows[segment], self.highs[segment]
        middle = 0.5 if self.lows.dtype.kind == "i" else 0.0  # the middle of an integer is safe from rounding
        share = min(1.0, max(0.0, (float(value - low) + middle) / float(high - low))) if high > low else 0.0
        return before + min(int(self.counts[segment]) - 1, int(share * int(self.counts[segment])))

    def ranks_of(self, value: float) -> range:
        """Return the ranks of all rows with the value at the rank of ``value``."""
        if not self.rows:
            return range(0)
        rank = self.rank_of(value)
        places = self.places(np.array([rank], dtype=np.int64))
        first = rank - int(places.repeat[0])
        return range(first, first + int(places.repeats[0]))

    def ranks_of_ordinals(self, ordinals: Integers) -> Integers:
        """Return the rank of the first row of each distinct value, given by ordinal."""
        ends = np.cumsum(self.distinct)
        segment = np.searchsorted(ends, ordinals, side="right").astype(np.int64)
        within = ordinals - (ends - self.distinct)[segment]
        count, distinct = self.counts[segment], self.distinct[segment]
        first = (np.cumsum(self.counts) - self.counts)[segment]
        found: Integers = first + within * (count // distinct) + np.minimum(within, count % distinct)
        return found

    def at(self, places: Places) -> NDArray[np.generic]:
        """Return the values at places as numbers on their scale."""
        low, high = self.lows[places.segment], self.highs[places.segment]
        share = (places.within + 0.5) / self.distinct[places.segment]
        offset = (high.astype(np.float64) - low.astype(np.float64)) * share
        if self.lows.dtype.kind == "i":
            first = low.astype(np.int64)
            last = np.maximum(high.astype(np.int64) - 1, first)
            return np.asarray(np.minimum(first + np.floor(offset).astype(np.int64), last))
        return low.astype(np.float64) + offset


@dataclass(frozen=True)
class Shape:
    """Statistics of a column's values on their scale.

    ``common`` has values with their shares of the rows that are not NULL; ``bounds`` divide the rest into
    parts with equal numbers of rows. ``distinct`` is the number of distinct values; None: as many as rows.
    ``is_whole``: values are integers. ``ranges``, if not empty, replace all of these: low, high, share.
    """

    common: Sequence[tuple[float, float]]
    bounds: Sequence[float]
    distinct: float | None
    is_whole: bool = True
    ranges: Sequence[tuple[float, float, float]] = ()


@dataclass
class _Segment:
    low: float
    high: float
    mass: float
    is_point: bool = False

    def room(self, *, is_whole: bool) -> int:
        """Return the maximum number of distinct values."""
        if self.is_point:
            return 1
        return int(self.high - self.low) if is_whole else _ANY


def distribute(shape: Shape, rows: int, most_repeats: int | None = None) -> Distribution:
    """Return a distribution of this shape over a number of rows.

    At most ``most_repeats`` rows have the same value, if there is room for enough values.
    """
    segments = _segments(shape)
    masses = np.array([one.mass for one in segments])
    ends = np.round(np.cumsum(masses) / masses.sum() * rows).astype(np.int64)
    counts = np.diff(ends, prepend=0)
    room = np.array([one.room(is_whole=shape.is_whole) for one in segments], dtype=np.int64)
    if shape.distinct is None:
        counts = _within(counts, room)
        if short := rows - int(counts.sum()):  # more rows than values: continue after the highest
            segments.append(_Segment(segments[-1].high, segments[-1].high + short, 0.0))
            counts = np.append(counts, short)
        distinct = counts.copy()
    else:
        is_point = np.array([one.is_point for one in segments])
        between = np.where(is_point, 0, counts)
        rest = max(0.0, shape.distinct - int(is_point.sum()))
        wanted = np.round(rest * between / max(1, between.sum())).astype(np.int64)
        most = np.maximum(1, np.minimum(counts, room))
        wanted = np.clip(wanted, 1, most)
        distinct = _dealt(wanted, most, round(shape.distinct) - int(wanted.sum()))
        if most_repeats is not None:
            distinct = np.maximum(distinct, np.minimum(room, -(-counts // most_repeats)))
            limited = _within(counts, distinct * most_repeats)
            if more := rows - int(limited.sum()):
                distinct = _dealt(distinct, np.maximum(distinct, room), -(-more // most_repeats))
                limited = _within(counts, distinct * most_repeats)
            counts = limited if int(limited.sum()) == rows else counts
    kind, kept = (np.int64 if shape.is_whole else np.float64), counts > 0
    lows, highs = (np.array([getattr(one, end) for one in segments], dtype=kind) for end in ("low", "high"))
    return Distribution(counts[kept], distinct[kept], lows[kept], highs[kept])


def _segments(shape: Shape) -> list[_Segment]:
    """Return segments for common values, and for the ranges between bounds, split at common values."""
    if shape.ranges:
        return [_Segment(*one) for one in shape.ranges]
    points = _merged(shape.common)
    step = 1 if shape.is_whole else 0.0
    bounds = [*shape.bounds[:-1], *(one + step for one in shape.bounds[-1:])]  # includes the highest value
    ranges = len(bounds) - 1
    left = max(0.0, 1 - sum(mass for _, mass in points))
    segments: list[_Segment] = []
    waiting = list(points)
    for low, high in pairwise(bounds):
        while waiting and waiting[0][0] < low:
            segments.append(_point(*waiting.pop(0)))
        inside = []
        while waiting and waiting[0][0] < high:
            inside.append(waiting.pop(0))
        segments += _divided(low, high, left / ranges, inside, step)
    segments += [_point(*one) for one in waiting]
    return segments if any(one.mass > 0 for one in segments) else [_Segment(0, _ANY, 1.0)]


def _point(value: float, mass: float) -> _Segment:
    return _Segment(value, value, mass, is_point=True)


def _divided(
    low: float, high: float, mass: float, points: Sequence[tuple[float, float]], step: float
) -> list[_Segment]:
    """Return a range split at common values; the parts between them get masses in proportion to width."""
    parts, start = [], low
    for value, its in points:
        parts += [_Segment(start, value, 0.0), _point(value, its)]
        start = value + step
    parts.append(_Segment(start, high, 0.0))
    between = [one for one in parts if not one.is_point and one.high > one.low]
    width = sum(one.high - one.low for one in between)
    for one in between:
        one.mass = mass * float((one.high - one.low) / width)
    if not between and parts[-1:]:  # both bounds are the same value
        parts[-1].mass = mass
    return [one for one in parts if one.is_point or one.mass > 0]


def _merged(common: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return common values in order, with equal ones merged."""
    masses: dict[float, float] = {}
    for value, mass in common:
        masses[value] = masses.get(value, 0.0) + mass
    return sorted(masses.items())


def _within(counts: Integers, room: Integers) -> Integers:
    """Return counts limited to the room of each; the surplus goes to segments with room left."""
    found = np.minimum(counts, room)
    return _dealt(found, room, int((counts - found).sum()))


def _dealt(counts: Integers, room: Integers, more: int) -> Integers:
    """Return counts increased by ``more`` in total, in proportion to the room left, and limited by it."""
    found = counts
    while more > 0 and (free := room - found).any():
        share = np.minimum(free, np.maximum(1, free * (more / float(free.sum()))).astype(np.int64))
        share = np.minimum(share, np.maximum(0, more - (np.cumsum(share) - share)))
        found, more = found + share, more - int(share.sum())
    return found
