"""Keys: unique combinations of values by rank, and foreign keys that reference them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np

from pgdyno.postgres.catalogued_tables import ColumnStatistics
from pgdyno.workload.synthesis.distribution import Distribution, Places, Shape, distribute
from pgdyno.workload.synthesis.ordered_values import OrderedValues, RowCounts, shape_of
from pgdyno.workload.synthesis.ordering import Integers, Ordering, fractions


class Key(Protocol):
    """Values of a key's columns by rank."""

    @property
    def rows(self) -> int:
        """Number of keys."""
        ...

    @property
    def leading(self) -> int:
        """Number of the leading column, with the values that ``ranks_of`` looks up."""
        ...

    def at(self, ranks: Integers) -> list[list[str]]:
        """Return the texts at these ranks for each column."""
        ...

    def ranks_of(self, text: str) -> range | None:
        """Return the ranks that a value of the original would have; None for one without a place."""
        ...


@dataclass(frozen=True)
class Follower:
    """A further part of a key; its values differ between rows with equal values in the previous parts.

    ``before`` has the numbers of distinct values of the parts between the leading part and this one: rows
    that share a leading value are divided among those first. ``is_last``: no other part follows. ``is_even``:
    all values are equally frequent. ``alone`` is the ordering used if no two rows share a leading value.
    """

    values: OrderedValues
    before: tuple[int, ...]
    is_last: bool
    is_even: bool
    alone: Ordering

    def ranks(self, leading: Places) -> Integers:
        """Return the ranks of rows by their places among the leading values.

        Ranks are spaced as far apart as possible from a random start, which preserves the frequencies of
        values. If a value is too frequent for this, all values are treated as equally frequent.
        """
        made = self.values.distribution
        if (leading.repeats == 1).all():
            return self.alone.ranks(leading.ordinal)
        number, parts = leading.repeat, leading.repeats
        for values in self.before:
            number, parts = _within_part(number, parts, np.minimum(values, parts))
        if not self.is_last:
            number, parts = _part(number, parts, few := np.minimum(made.values, parts)), few
        start = fractions(leading.ordinal, self.alone.seed)

        def apart(size: int) -> Integers:
            return ((start * size).astype(np.int64) + number * size // parts) % size

        is_crowded = self.is_even | (parts * made.largest_repeat > made.rows)
        return np.where(is_crowded, made.ranks_of_ordinals(apart(made.values)), apart(made.rows))


def _part(number: Integers, count: Integers, parts: Integers) -> Integers:
    """Return the part of each of ``count`` rows, divided into parts as equal as possible."""
    return number * parts // count


def _within_part(number: Integers, count: Integers, parts: Integers) -> tuple[Integers, Integers]:
    """Return the numbers of rows within their parts, and the sizes of these parts."""
    part = _part(number, count, parts)
    first, after = -(-part * count // parts), -(-(part + 1) * count // parts)
    return number - first, after - first


@dataclass(frozen=True)
class CompositeKey:
    """A key of several parts; ``order`` has the positions of its columns among the parts' columns."""

    first: OrderedValues
    followers: tuple[Follower, ...]
    order: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Number of keys."""
        return self.first.distribution.rows

    @property
    def leading(self) -> int:
        """Number of the leading column, with the values that ``ranks_of`` looks up."""
        return self.order.index(self.first.leading)

    def at(self, ranks: Integers) -> list[list[str]]:
        """Return the texts at these ranks for each column."""
        places = self.first.distribution.places(ranks)
        found = [*self.first.render(places)]
        for one in self.followers:
            found += one.values.at(one.ranks(places))
        return [found[place] for place in self.order]

    def ranks_of(self, text: str) -> range | None:
        """Return the ranks that a value of the original would have; None for one without a place."""
        return self.first.ranks_of(text)


@dataclass(frozen=True)
class SimpleKey:
    """A key of a single part; ``order`` as in ``CompositeKey``."""

    values: OrderedValues
    order: tuple[int, ...]

    @property
    def rows(self) -> int:
        """Number of keys."""
        return self.values.distribution.rows

    @property
    def leading(self) -> int:
        """Number of the leading column, with the values that ``ranks_of`` looks up."""
        return self.order.index(self.values.leading)

    def at(self, ranks: Integers) -> list[list[str]]:
        """Return the texts at these ranks for each column."""
        found = self.values.at(ranks)
        return [found[place] for place in self.order]

    def ranks_of(self, text: str) -> range | None:
        """Return the ranks that a value of the original would have; None for one without a place."""
        return self.values.ranks_of(text)


@dataclass(frozen=True)
class PartedKey:
    """The key of a partitioned table: the keys of its partitions, one after the other."""

    parts: tuple[Key, ...]
    _ends: Integers = field(init=False)

    def __post_init__(self) -> None:
        """Count the rows."""
        object.__setattr__(self, "_ends", np.cumsum([one.rows for one in self.parts], dtype=np.int64))

    @property
    def rows(self) -> int:
        """Number of keys."""
        return int(self._ends[-1]) if self.parts else 0

    @property
    def leading(self) -> int:
        """Number of the leading column, with the values that ``ranks_of`` looks up."""
        return self.parts[0].leading

    def at(self, ranks: Integers) -> list[list[str]]:
        """Return the texts at these ranks for each column."""
        which = np.searchsorted(self._ends, ranks, side="right")
        found: list[list[str]] = []
        for number in np.unique(which).tolist():
            rows = np.flatnonzero(which == number)
            part = self.parts[number]
            texts = part.at(ranks[rows] - (int(self._ends[number]) - part.rows))
            found = found or [[""] * len(ranks) for _ in texts]
            for column, its in zip(found, texts, strict=True):
                for row, text in zip(rows.tolist(), its, strict=True):
                    column[row] = text
        return found

    def ranks_of(self, text: str) -> range | None:
        """Return the ranks of a value in the first partition that has it within its bounds, or None."""
        for part, end in zip(self.parts, self._ends.tolist(), strict=True):
            ranks = part.ranks_of(text)
            if ranks is not None and ranks.start > 0 and ranks.stop < part.rows:
                before = int(end) - part.rows
                return range(before + ranks.start, before + ranks.stop)
        return None


@dataclass(frozen=True)
class FurtherPart:
    """A part of a key after the first one; ``is_even`` and ``alone`` as in ``Follower``."""

    values: OrderedValues
    is_even: bool
    alone: Ordering


def followers_of(others: Sequence[FurtherPart]) -> tuple[Follower, ...]:
    """Return the further parts of a key; the first of them changes slowest, so all combinations differ."""
    each = [one.values.distribution.values for one in others]
    return tuple(
        Follower(one.values, tuple(each[:number]), number == len(others) - 1, one.is_even, one.alone)
        for number, one in enumerate(others)
    )


def referring_values(
    seen: ColumnStatistics, key: Key, size: RowCounts, original: float, *, is_unique: bool
) -> OrderedValues:
    """Return a foreign key's values: ranks of the referenced key with the foreign key's frequencies.

    ``seen`` are the statistics of the column that references the key's leading column. ``original`` is the
    number of rows of the referenced table in the original; if the copy has fewer, the foreign key has
    proportionally fewer distinct values.
    """
    shape = _referring_shape(seen, key, size.rows, is_unique=is_unique)
    if shape.distinct is not None and not shape.ranges:
        shrunk = min(1.0, key.rows / original) if original else 1.0
        wanted = shape.distinct if seen.distinct < 0 else shape.distinct * shrunk
        shape = replace(shape, distinct=min(wanted, key.rows))
    made = distribute(shape, size.rows, size.most_repeats)
    last = max(0, key.rows - 1)

    def render(places: Places) -> list[list[str]]:
        return key.at(np.clip(made.at(places).astype(np.int64), 0, last))

    return OrderedValues(made, render, partial(_through, key, made), key.leading)


def _referring_shape(seen: ColumnStatistics, key: Key, rows: int, *, is_unique: bool) -> Shape:
    """Return the shape of a foreign key's values as ranks of the referenced key."""
    of_common = [key.ranks_of(one) for one in seen.common]
    of_bounds = {one: key.ranks_of(one) for one in seen.bounds}
    if any(one is not None and len(one) > 1 for one in (*of_common, *of_bounds.values())):
        # The key's leading column is not unique.
        with_value = max(1e-9, 1 - seen.null_fraction)
        masses = [one / with_value for one in seen.frequencies]
        known = sorted(
            (one.start, one.stop, mass)
            for one, mass in zip(of_common, masses, strict=False)
            if one is not None
        )
        return Shape((), (), None if is_unique else min(rows, key.rows), ranges=_with_gaps(known, key.rows))
    places = {one: ranks.start for one, ranks in of_bounds.items() if ranks is not None}
    starts = [None if one is None else one.start for one in of_common]
    ranks_apart = zip(seen.common, _apart(starts, key.rows), strict=True)
    places |= {one: rank for one, rank in ranks_apart if rank is not None}
    shape = shape_of(seen, places.get, rows, is_unique=is_unique)
    is_short = is_unique and bool(shape.bounds) and shape.bounds[-1] - shape.bounds[0] + 1 < rows
    if is_short or not (shape.common or shape.bounds):
        return Shape((), (0, max(0, key.rows - 1)), shape.distinct)
    return shape


def _with_gaps(known: Sequence[tuple[int, int, float]], size: int) -> list[tuple[float, float, float]]:
    """Return ranges with their shares, and the gaps between them, which share the rest by width."""
    found: list[tuple[float, float, float]] = []
    gaps: list[tuple[int, int]] = []
    end = 0
    for start, stop, mass in known:
        if start > end:
            gaps.append((end, start))
        if stop > (start := max(start, end)):
            found.append((start, stop, mass))
            end = stop
    if end < size:
        gaps.append((end, size))
    rest, width = max(0.0, 1 - sum(one[2] for one in found)), sum(stop - start for start, stop in gaps)
    found += [(start, stop, rest * (stop - start) / width) for start, stop in gaps]
    return sorted(found)


def _through(key: Key, made: Distribution, text: str) -> range | None:
    ranks = key.ranks_of(text)
    if ranks is None:
        return None
    if not ranks:
        return ranks
    return range(made.ranks_of(ranks.start).start, made.ranks_of(ranks.stop - 1).stop)


def _apart(ranks: Sequence[int | None], rows: int) -> list[int | None]:
    """Return distinct ranks as long as free ones remain: a rank already taken moves to the next free one."""
    taken: set[int] = set()
    found: list[int | None] = []
    for rank in ranks:
        if rank is not None and len(taken) < rows:
            while rank in taken:
                rank = (rank + 1) % rows  # noqa: PLW2901 — it moves to the next rank
            taken.add(rank)
        found.append(rank)
    return found
