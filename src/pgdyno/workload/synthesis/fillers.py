"""Values of types without useful statistics: documents, arrays, and unknown types."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pgdyno.postgres.catalogued_tables import ColumnStatistics, TableColumn
from pgdyno.workload.synthesis.columns import has_order, ordered_values
from pgdyno.workload.synthesis.generated_texts import alphabet_of, made_up_texts
from pgdyno.workload.synthesis.ordered_values import NOTHING_KNOWN, RowCounts
from pgdyno.workload.synthesis.ordering import Integers, fractions
from pgdyno.workload.synthesis.text_columns import TEXTS, SharedTexts

Fill = Callable[[Integers], list[str]]
"""Makes a text for each position."""

_WRAPPED = {
    "json": ('{"filler": "', '"}'),
    "jsonb": ('{"filler": "', '"}'),
    "xml": ("<filler>", "</filler>"),
    "hstore": ('"filler"=>"', '"'),
    "tsvector": ("'", "'"),
    "ltree": ("", ""),
}
"""Prefix and suffix around letters in a valid value of a type."""
_FIXED = {
    "point": "(0,0)",
    "macaddr": "02:00:00:00:00:00",
    "timetz": "12:00:00+00",
    "money": "1.00",
    "char": "a",
}
_MOST_ELEMENTS = 1000  # of an array, or bits: arbitrary
_AROUND_JSONB = 19  # size in bytes of the jsonb document without its letters


def filler(column: TableColumn, seed: int, shared: SharedTexts | None = None) -> Fill | None:
    """Return a generator of values for a type without an order; None if no valid values are known.

    ``shared`` are the texts of an array's elements in all partitions of the table, if it has any.
    """
    seen = column.statistics or NOTHING_KNOWN
    if column.element is not None:
        return _array(column, seen, seed, shared)
    if column.type in _WRAPPED:
        before, after = _WRAPPED[column.type]
        around = _AROUND_JSONB if column.type == "jsonb" else len(before + after) + 1
        return _wrapped(before, after, max(1, seen.width_bytes - around), seed)
    if column.type in {"bit", "varbit"} and column.modifier <= _MOST_ELEMENTS:
        bits = "0" * max(1, column.modifier)
        return lambda positions: [bits] * len(positions)
    if column.type in _FIXED:
        fixed = _FIXED[column.type]
        return lambda positions: [fixed] * len(positions)
    return None


def _wrapped(before: str, after: str, length: int, seed: int) -> Fill:
    def fill(positions: Integers) -> list[str]:
        lengths = np.full(len(positions), length, dtype=np.int64)
        return [
            f"{before}{one}{after}" for one in made_up_texts(positions, 1, lengths, alphabet_of(()), seed)
        ]

    return fill


def _array(column: TableColumn, seen: ColumnStatistics, seed: int, shared: SharedTexts | None) -> Fill | None:
    """Return a generator of arrays with the mean number of elements, and the common elements' frequencies."""
    count, element = _elements_of(seen), element_of(column)
    if not has_order(element):
        return lambda positions: ["{}"] * len(positions)
    rows = 1_000_000  # number of ranks from which elements are drawn
    size = RowCounts(rows, rows)
    values = ordered_values(element, size, is_unique=False, literals=frozenset(), seed=seed, shared=shared)

    def fill(positions: Integers) -> list[str]:
        drawn = [
            values.at((fractions(positions, seed + number) * rows).astype(np.int64))[0]
            for number in range(count)
        ]
        each = zip(*drawn, strict=True) if drawn else [()] * len(positions)
        return ["{" + ",".join(map(_quoted, one)) + "}" for one in each]

    return fill


def element_of(column: TableColumn) -> TableColumn:
    """Return the elements of an array's column as a column."""
    assert column.element is not None  # noqa: S101 — the caller has checked
    seen = column.statistics or NOTHING_KNOWN
    each_bytes = (seen.width_bytes - 24) // max(1, _elements_of(seen)) - 4
    of = ColumnStatistics(
        0.0,
        max(2, each_bytes if column.element in TEXTS else 8),
        float(len(seen.elements) or -1),
        seen.elements,
        seen.element_frequencies,
    )
    return TableColumn(column.name, column.element, -1, is_not_null=True, labels=column.labels, statistics=of)


def _elements_of(seen: ColumnStatistics) -> int:
    return min(_MOST_ELEMENTS, round(seen.element_count if seen.element_count is not None else 1))


def _quoted(element: str) -> str:
    return '"' + element.replace("\\", "\\\\").replace('"', '\\"') + '"'
