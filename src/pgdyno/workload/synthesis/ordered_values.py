"""The values of a column in their order, and the shape that statistics give them."""

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

    ``render`` returns texts for each column. ``ranks_of`` returns where a value that the original has in the
    column with the number ``leading`` would be; it is None for a value without a place.
    """

    distribution: Distribution
    render: Callable[[Places], list[list[str]]]
    ranks_of: Callable[[str], range | None]
    leading: int = 0

    def at(self, ranks: Integers) -> list[list[str]]:
        """Return the texts of these ranks, for each column."""
        return self.render(self.distribution.places(ranks))


@dataclass(frozen=True)
class RowCounts:
    """Rows of the copy, and of the original; and how many may have the same value: None, any."""

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
    """Return the shape of values on a scale, as statistics have it."""
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
    """Return how many distinct values there are to be among these rows, which have a value."""
    if seen.distinct < 0:  # a share of all rows, those without a value among them
        return min(rows, -seen.distinct * rows / max(1e-9, 1 - seen.null_fraction))
    return min(seen.distinct or _UNKNOWN_DISTINCT, rows)


def ranks_of(made: Distribution, parse: Callable[[str], float | None], text: str) -> range | None:
    """Return where a value is in a distribution; None for one without a place on its scale."""
    value = parse(text)
    return None if value is None else made.ranks_of(value)
