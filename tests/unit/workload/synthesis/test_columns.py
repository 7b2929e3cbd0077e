"""Values of a column in order: keys without gaps, times at midnight, and types that have no order."""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.postgres.catalogued_tables import ColumnStatistics, TableColumn
from pgdyno.workload.synthesis.columns import has_order, ordered_values
from pgdyno.workload.synthesis.ordered_values import RowCounts


def column(type_: str, bounds: tuple[str, ...] = (), **given: object) -> TableColumn:
    seen = ColumnStatistics(0.0, 8, -1.0, bounds=bounds)
    return TableColumn("c", type_, -1, is_not_null=True, statistics=seen, **given)  # type: ignore[arg-type]


def texts(of: TableColumn, size: RowCounts, *, is_unique: bool) -> list[str]:
    made = ordered_values(of, size, is_unique=is_unique, literals=frozenset(), seed=7)
    return made.at(np.arange(size.rows))[0]


@pytest.mark.parametrize(
    ("of", "is_ordered"),
    [
        (column("int4"), True),
        (column("text"), True),
        (column("timestamptz"), True),
        (column("_int4", element="int4"), False),
        (column("json"), False),
        (column("mood", labels=("sad", "happy")), True),
    ],
)
def test_arrays_and_documents_have_no_order(of: TableColumn, *, is_ordered: bool) -> None:
    assert has_order(of) is is_ordered


def test_keys_without_gaps_stay_without_gaps_in_a_smaller_copy() -> None:
    keys = column("int4", ("1", "2500", "5000", "10000"))
    assert texts(keys, RowCounts(100, 10_000), is_unique=True) == [str(one) for one in range(1, 101)]


def test_keys_with_gaps_lie_between_their_bounds() -> None:
    keys = texts(column("int4", ("10", "5000", "90000")), RowCounts(100, 1000), is_unique=True)
    assert len(set(keys)) == 100
    assert all(10 <= int(one) <= 90_000 for one in keys)


def test_times_at_midnight_stay_at_midnight() -> None:
    days = tuple(f"2026-11-{day:02} 00:00:00" for day in range(1, 13))
    found = texts(column("timestamp", days), RowCounts(50, 50), is_unique=False)
    assert {one[10:] for one in found} == {"T00:00:00.000000"}
    assert {one[:7] for one in found} == {"2026-11"}
