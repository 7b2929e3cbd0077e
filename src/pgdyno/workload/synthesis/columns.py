"""Ordered values of a column, generated from its statistics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import gcd

from pgdyno.postgres.catalogued_tables import TableColumn
from pgdyno.workload.synthesis.distribution import distribute
from pgdyno.workload.synthesis.generated_texts import MAKERS
from pgdyno.workload.synthesis.ordered_values import (
    NOTHING_KNOWN,
    OrderedValues,
    RowCounts,
    ranks_of,
    shape_of,
)
from pgdyno.workload.synthesis.scales import Scale, scale_of
from pgdyno.workload.synthesis.text_columns import TEXTS, SharedTexts, made_up_values

_INTEGERS = frozenset({"int2", "int4", "int8"})
_DENSE = 1.1  # a range of keys with so few gaps is generated without gaps
_TELLING = 10  # minimum number of known values to take their greatest common divisor as the unit


def has_order(column: TableColumn) -> bool:
    """Whether values of a column's type can be generated in order."""
    if column.element is not None:
        return False
    return has_made_up_values(column) or scale_of(column.type, column.labels, (), -1) is not None


def has_made_up_values(column: TableColumn) -> bool:
    """Whether a column, or the elements of its arrays, have values that are generated without real data."""
    type_ = column.element or column.type
    return type_ in TEXTS or type_ in MAKERS


def ordered_values(
    column: TableColumn,
    size: RowCounts,
    *,
    is_unique: bool,
    literals: frozenset[str],
    seed: int,
    shared: SharedTexts | None = None,
) -> OrderedValues:
    """Return a column's ordered values. ``literals`` are texts in the schema, which are kept unchanged.

    ``shared`` are the texts of the column in all partitions of the table, if it has any.
    """
    seen = column.statistics or NOTHING_KNOWN
    scale = scale_of(column.type, column.labels, (*seen.common, *seen.bounds), column.modifier)
    if scale is None:
        return made_up_values(column, size, is_unique=is_unique, literals=literals, seed=seed, shared=shared)
    scale, unit = _with_unit(scale, (*seen.common, *seen.bounds), is_label=bool(column.labels))
    shape = shape_of(seen, scale.parse, size.rows, is_unique=is_unique, is_whole=scale.is_whole)
    if not shape.common and not shape.bounds:
        shape = replace(shape, bounds=_usual(scale, size.rows, is_unique=is_unique))
    elif is_unique and column.type in _INTEGERS and _is_dense(shape.bounds, size.original):
        first, last = _first_key(shape.bounds), shape.bounds[-1]
        scale = _shrunk(scale, first, size.rows / (last - first + 1))
        shape = replace(shape, bounds=[first, first + max(1, size.rows) - 1])
    made = distribute(shape, size.rows, size.most_repeats)
    return OrderedValues(
        made,
        lambda places: [scale.render(made.at(places) * unit)],
        partial(ranks_of, made, scale.parse),
    )


def _is_dense(bounds: Sequence[float], rows: float) -> bool:
    return len(bounds) > 1 and bounds[-1] - bounds[0] + 1 <= _DENSE * rows


def _first_key(bounds: Sequence[float]) -> float:
    """Return the first key: 1 if the lowest known one is no further from 1 than neighbours are apart."""
    apart = (bounds[-1] - bounds[0]) / (len(bounds) - 1)
    return 1 if 1 <= bounds[0] <= 1 + apart else bounds[0]


def _shrunk(scale: Scale, first: float, share: float) -> Scale:
    """Return a scale that maps the original's keys to those of a copy with a share of the rows."""
    if share >= 1:
        return scale

    def parse(text: str) -> float | None:
        value = scale.parse(text)
        return None if value is None else int(first + (value - first) * share)

    return replace(scale, parse=parse)


def _usual(scale: Scale, rows: int, *, is_unique: bool) -> Sequence[float]:
    """Return default bounds for a column without known ones."""
    low, high = scale.usual
    return [low, max(high, low + rows - 1)] if is_unique and scale.is_whole else [low, high]


def _with_unit(scale: Scale, known: Sequence[str], *, is_label: bool) -> tuple[Scale, int]:
    """Return a scale in units that divide all known values, such as days for time stamps at midnight."""
    if not scale.is_whole or is_label or len(known) < _TELLING:
        return scale, 1
    unit = gcd(*(int(value) for text in known if (value := scale.parse(text)) is not None))
    if unit <= 1:
        return scale, 1

    def parse(text: str) -> float | None:
        value = scale.parse(text)
        return None if value is None else int(value) // unit

    return replace(scale, parse=parse, usual=(scale.usual[0] // unit, scale.usual[1] // unit)), unit
