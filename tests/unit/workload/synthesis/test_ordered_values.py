"""How many distinct values a column of the copy has, and the shape of its values."""

from __future__ import annotations

import pytest

from pgdyno.postgres.catalogued_tables import ColumnStatistics
from pgdyno.workload.synthesis.ordered_values import distinct_values, shape_of


@pytest.mark.parametrize(
    ("distinct", "nulls", "rows", "expected"),
    [
        (5.0, 0.0, 100, 5),
        (500.0, 0.0, 100, 100),
        (-1.0, 0.0, 100, 100),
        (-0.5, 0.0, 100, 50),
        (-0.5, 0.5, 100, 100),  # half of all rows, and only half of them have a value
        (0.0, 0.0, 1000, 100),  # unknown
    ],
)
def test_a_negative_number_is_a_share_of_all_rows(
    distinct: float, nulls: float, rows: int, expected: float
) -> None:
    assert distinct_values(ColumnStatistics(nulls, 4, distinct), rows) == pytest.approx(expected)


def test_frequencies_are_those_among_the_rows_with_a_value() -> None:
    seen = ColumnStatistics(0.5, 4, 3, ("7", "x"), (0.25, 0.1), ("9", "1", "y"))
    shape = shape_of(seen, lambda text: float(text) if text.isdigit() else None, 100, is_unique=False)
    assert shape.common == [(7.0, 0.5)]
    assert list(shape.bounds) == [1.0, 9.0]
    unique = shape_of(seen, lambda text: float(text) if text.isdigit() else None, 100, is_unique=True)
    assert list(unique.common) == []
