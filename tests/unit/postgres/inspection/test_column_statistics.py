"""A row of pg_stats: clamped to what is possible, or refused."""

from __future__ import annotations

from typing import Any

import pytest

from pgdyno.postgres.catalogued_tables import ColumnStatistics
from pgdyno.postgres.inspection.column_statistics import statistics_of, within

ROW: list[Any] = [0.25, 4, -1.0, [b"a", b"\xff"], [0.5, 0.25], [b"b", b"c"], 1.0000001, [], None, None]


def test_a_row_becomes_statistics_with_bytes_as_text() -> None:
    expected = ColumnStatistics(0.25, 4, -1.0, ("a", "\ufffd"), (0.5, 0.25), ("b", "c"), 1.0)
    assert statistics_of(ROW) == expected
    arrays = statistics_of([0, 40, 0, [], None, [], None, [b"x"], [0.5], 2.5])
    assert (arrays.elements, arrays.element_frequencies, arrays.element_count) == (("x",), (0.5,), 2.5)
    assert arrays.correlation is None


@pytest.mark.parametrize(
    ("place", "value"), [(0, 1.1), (0, float("nan")), (1, -5), (2, -1.5), (4, [2.0]), (6, "x"), (9, -1.0)]
)
def test_what_no_column_can_have_is_an_error(place: int, value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        statistics_of([*ROW[:place], value, *ROW[place + 1 :]])


def test_rounding_errors_are_clamped() -> None:
    assert within(-0.0005, 0, 1) == 0
    assert within(1.0005, 0, 1) == 1
    with pytest.raises(ValueError, match=r"^1\.01 is not between 0 and 1$"):
        within(1.01, 0, 1)
