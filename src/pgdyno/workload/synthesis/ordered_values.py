"""Ordered values of a column, and their shape according to statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pgdyno.postgres.catalogued_tables import ColumnStatistics
from pgdyno.workload.synthesis.distribution import Distribution, Places, Shape
from pgdyno.workload.synthesis.ordering import Integers

NOTHING_KNOWN = ColumnStatistics(null_fraction=0.0, width_bytes=11, distinct=0.0)
_UNKNOWN_DISTINCT = 100  # arbitrary


@dataclass(frozen=True)
class OrderedValues:
    """Values of one column, or of a foreign key's columns together, by their places in the order.

    ``render`` returns texts for each column. ``ranks_of`` returns the ranks that a value of the original
    would have in column number ``leading``; None for a value without a place.
    """

    distribution: Distribution
    render: Callable[[Places], list[list[str]]]
    ranks_of: Callable[[str], range | None]
    leading: int = 0

    def at(self, ranks: Integers) -> list[list[str]]:
        """Return the texts at these ranks for each column."""
        return self.render(self.distribution.places(ranks))


@dataclass(frozen=True)
class RowCounts:
    """Numbers of rows of the copy, of the original, and of those that may share a value (None: any)."""

    rows: int
    original: float
    most_repeats: int | None = None


def shape_of(
    seen: ColumnStatistics,
    parse: Callable[[str], float | None],
    rows: int,
    *,
    is_unique: bool,
    is_whole: bool = True,
) -> Shape:
    """Return the shape of values on a scale according to statistics."""
    with_value = max(1e-9, 1 - seen.null_fraction)
    common = [
        (value, frequency / with_value)
        for text, frequency in zip(seen.common, seen.frequencies, strict=False)
        if (value := parse(text)) is not None
    ]
    bounds = sorted(value for text in seen.bounds if (value := parse(text)) is not None)
    return Shape(
        () if is_unique else common, bounds, None if is_unique else distinct_values(seen, rows), is_whole
    )


def distinct_values(seen: ColumnStatistics, rows: int) -> float:
    """Return the number of distinct values to generate among ``rows`` rows that are not NULL."""
    if seen.distinct < 0:  # a share of all rows, including NULL
        return min(rows, -seen.distinct * rows / max(1e-9, 1 - seen.null_fraction))
    return min(seen.distinct or _UNKNOWN_DISTINCT, rows)


def ranks_of(made: Distribution, parse: Callable[[str], float | None], text: str) -> range | None:
    """Return the ranks of a value in a distribution; None for one without a place on its scale."""
    value = parse(text)
    return None if value is None else made.ranks_of(value)
