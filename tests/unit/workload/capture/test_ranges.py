"""Ranges of columns: the parameters that end them, and their widths, from counted rows or a log's values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from pgdyno.model.experiments.captured import (
    Between,
    ColumnValue,
    Constant,
    Parameter,
    RangeEnd,
    SameValue,
)
from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.parameters import Parameters, parameters_of
from pgdyno.workload.capture.ranges import is_current, measured, on_its_clock

ID, PLACED, AT, PRICE, NAME = (f"public.orders.{name}" for name in ("id", "placed", "at", "price", "name"))
COLUMNS = [
    Column("public", "orders", name, type_, is_key=name == "id", is_visible=True)
    for name, type_ in (
        ("id", "bigint"),
        ("placed", "date"),
        ("at", "timestamp with time zone"),
        ("price", "numeric"),
        ("name", "text"),
        ("customer", "integer"),
    )
]
DAY = 86_400


def found(
    condition: str,
    rows: float = 12.34,
    numbers: Sequence[Mapping[int, float]] | None = None,
    types: Sequence[str] = (),
    *,
    query: str = "SELECT id FROM orders WHERE ",
) -> Parameters:
    return parameters_of(query + condition, types, COLUMNS, Seen(100, 1.0, round(100 * rows), 0, 0), numbers)


@pytest.mark.parametrize(
    ("condition", "column", "is_open"),
    [
        ("placed BETWEEN $1 AND $2", PLACED, False),
        ("placed >= $1 AND placed <= $2", PLACED, False),
        ("placed >= $1 AND placed < $2", PLACED, True),
        ("$1 < at AND ($2 >= at)", AT, True),
        ("price BETWEEN $1 AND $2", PRICE, False),
    ],
)
def test_a_range_alone_has_as_many_rows_as_a_call_returns(condition: str, column: str, is_open: bool) -> None:  # noqa: FBT001
    its = found(condition)
    assert its.drawn == (ColumnValue(column), RangeEnd(1, column, rows=12.3, is_open=is_open))
    assert its.notes == (
        (
            f"the width of the range of {column} is unknown: it is chosen for 12.3 rows of the table, as a "
            "call returns"
        ),
    )
    assert (its.widths, its.unmeasured) == ({column: 12.3}, {})


def test_the_upper_end_may_come_first() -> None:
    expected = (ColumnValue(PRICE), RangeEnd(1, PRICE, rows=12.3, is_lower=True, is_open=True))
    assert found("price < $1 AND price >= $2").drawn == expected
    assert found("id <= $1 AND id >= $2", 100).drawn == (ColumnValue(ID), SameValue(1, plus=-99))


@pytest.mark.parametrize("query", ["UPDATE orders SET name = name WHERE ", "DELETE FROM orders WHERE "])
def test_rows_that_are_written_are_those_of_the_range(query: str) -> None:
    assert found("placed BETWEEN $1 AND $2", query=query).drawn[1] == RangeEnd(1, PLACED, rows=12.3)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) FROM orders WHERE placed BETWEEN $1 AND $2",
        "SELECT id FROM orders WHERE placed BETWEEN $1 AND $2 AND customer = 3",
        "SELECT id FROM orders WHERE placed BETWEEN $1 AND $2 OR price = 3",
        "SELECT id FROM orders WHERE NOT (placed BETWEEN $1 AND $2)",
        "SELECT id FROM orders WHERE placed BETWEEN $1 AND $2 LIMIT 7",
        "SELECT DISTINCT name FROM orders WHERE placed BETWEEN $1 AND $2",
        "SELECT o.id FROM orders o JOIN orders p ON p.id = o.id WHERE o.placed BETWEEN $1 AND $2",
    ],
)
def test_if_a_call_returns_other_rows_too_the_end_is_any_further_on(sql: str) -> None:
    its = found("", query=sql)
    assert its.drawn == (ColumnValue(PLACED), RangeEnd(1, PLACED))
    assert (its.widths, its.unmeasured, its.notes) == ({}, {2: (PLACED, False)}, ())


def test_a_log_shows_the_widths_of_ranges() -> None:
    def widths(condition: str, *calls: tuple[str, str]) -> Parameter:
        numbers = [
            {number: value for number, text in enumerate(call, 1) if (value := measured(text)) is not None}
            for call in calls
        ]
        return found(condition, 0, numbers).drawn[1]

    dates = ("2026-02-22", "2026-03-01"), ("2025-12-31", "2026-01-01")
    assert widths("placed BETWEEN $1 AND $2", *dates) == RangeEnd(1, PLACED, (DAY, 7 * DAY))
    times = [("2026-01-01 10:00:00+00", "2026-01-01 13:00:00.5+02")]
    assert widths("at BETWEEN $1 AND $2", *times) == RangeEnd(1, AT, (3600.5,))
    assert widths("price BETWEEN $1 AND $2", ("9.50", "12")) == RangeEnd(1, PRICE, (2.5,))
    ids = ("5", "14"), ("1", "100")
    assert widths("id BETWEEN $1 AND $2", *ids) == RangeEnd(1, ID, (9, 99))
    assert widths("id < $1 AND id > $2", ("14", "5")) == SameValue(1, plus=-9)


def test_a_width_that_would_be_the_value_of_an_end_is_not_kept() -> None:
    its = found("price BETWEEN $1 AND $2", 0, [{1: 0, 2: 1234.56}])
    assert (its.drawn[1], its.unmeasured) == (RangeEnd(1, PRICE), {2: (PRICE, False)})


@pytest.mark.parametrize(
    ("column", "calls"),
    [
        ("placed", [("1900-01-01", "1984-03-07")]),
        ("placed", [("1900-01-01", "1984-03-07"), ("1901-01-01", "1971-12-24")]),
        ("placed", [("2026-03-07", "9999-12-31")]),
        ("placed", [("2000-01-01", "2004-03-07"), ("2000-01-01", "2005-01-01")]),
        ("price", [("1", "81234.56")]),
        ("price", [("1", "81234.56"), ("1", "81234.56")]),
        ("price", [("500", "81234.56"), ("400", "81234.56")]),
    ],
)
def test_an_end_that_is_known_would_show_the_other_one(column: str, calls: Sequence[tuple[str, str]]) -> None:
    numbers = [{1: measured(low) or 0, 2: measured(high) or 0} for low, high in calls]
    its = found(f"{column} BETWEEN $1 AND $2", 0, numbers)
    path = f"public.orders.{column}"
    assert (its.drawn[1], its.widths, its.unmeasured) == (RangeEnd(1, path), {}, {2: (path, False)})


@pytest.mark.parametrize("numbers", [None, [{1: 1e9, 2: 3.0 * DAY, 3: 1e9, 4: 3.0 * DAY}]])
def test_a_time_with_as_much_before_and_after_it_is_one_time(
    numbers: Sequence[Mapping[int, float]] | None,
) -> None:
    types = ("timestamp with time zone", "interval") * 2
    its = found("at BETWEEN $1::timestamptz - $2 AND $3::timestamptz + $4", 12, numbers, types)
    assert its.drawn == (ColumnValue(AT), Constant("1 day"), SameValue(1), SameValue(2))


AT_S = 1_767_571_205.3  # 2026-01-05 00:00:05.3


def test_a_log_has_one_time_zone() -> None:
    def current(*later_s: float, calls: int = 20) -> tuple[list[bool | None], tuple[str, ...]]:
        ours = {
            5: [
                {0: AT_S + 61 * n, **{one: AT_S + 61 * n + its for one, its in enumerate(later_s, 1)}}
                for n in range(1, calls + 1)
            ]
        }
        calls_on_clock, notes = on_its_clock(ours, [5])
        return [is_current(calls_on_clock[5], one) for one in range(1, len(later_s) + 1)], notes

    assert current(0.5, 0.5, 3600, 1800) == ([True, True, False, False], ())
    assert current(0, 86_400, 3600) == ([True, False, False], ())
    assert current(7200.5, 7200.5, 10_800) == (
        [True, True, False],
        (("written times are 2 h after the call: they are taken for the current time of another time zone"),),
    )


def test_a_log_has_one_day() -> None:
    midnight = 1_767_571_200.0

    def current(*days: int, later_s: float = 0.0) -> tuple[list[bool | None], tuple[str, ...]]:
        dates = {one: midnight + its * DAY for one, its in enumerate(days, 2)}
        numbers, notes = on_its_clock({5: [{0: AT_S + 3600, 1: AT_S + 3600 + later_s, **dates}]}, [5])
        return [is_current(numbers[5], one) for one in dates], notes

    assert current(0, 0, -1) == ([True, True, False], ())
    assert current(-1, later_s=-5 * 3600)[0] == [True]  # in New York it is still the day before
    assert current(-1) == (
        [True],
        (
            (
                "written dates are of the day before the call: they are taken for the current date of "
                "another time zone"
            ),
        ),
    )


def test_texts_have_no_widths() -> None:
    its = found("name BETWEEN $1 AND $2")
    assert its.drawn == (ColumnValue(NAME), ColumnValue(NAME))
    assert its.notes == (f"both ends of the range of {NAME} are drawn independently: it is no number",)


_SHIFTED = "placed BETWEEN $1::date + $2 AND $3::date + $4"


@pytest.mark.parametrize(
    ("condition", "type_", "by"),
    [
        (_SHIFTED, "integer", Between(1, 100)),
        ("placed >= $1::date - $2 AND placed <= $3::date - $4", "interval", Constant("1 day")),
    ],
)
def test_ends_that_are_both_shifted_are_shifted_equally_and_not_equal(
    condition: str, type_: str, by: Parameter
) -> None:
    drawn = found(condition, types=("date", type_, "date", type_)).drawn
    assert drawn == (ColumnValue(PLACED), by, RangeEnd(1, PLACED, rows=12.3), SameValue(2))


def test_the_width_of_a_shifted_range_in_a_log_is_that_of_its_shifted_ends() -> None:
    def width(second: float, shifts: tuple[float, float]) -> Parameter:
        call = {1: 1_767_225_600.0, 2: shifts[0], 3: second, 4: shifts[1]}
        return found(_SHIFTED, 0, [call], ("date", "integer", "date", "integer")).drawn[2]

    assert width(1_767_225_600.0, (3, 10)) == RangeEnd(1, PLACED, (7 * DAY,))  # days
    assert width(1_767_225_600.0 + DAY, (3.0, 3.0)) == RangeEnd(1, PLACED, (DAY,))  # seconds of intervals
    unknown = found(_SHIFTED, 0, [{1: 1_767_225_600.0, 3: 1_767_225_600.0}], ("date", "interval") * 2)
    assert (unknown.drawn[2], unknown.unmeasured) == (RangeEnd(1, PLACED), {3: (PLACED, False)})


def test_a_range_that_one_shift_makes_wide_has_that_width() -> None:
    types = ("date", "interval", "date")
    assert found("placed >= $1::date - $2 AND placed < $3::date", types=types).drawn[2] == SameValue(1)
    narrow = found("placed >= $1::date + $2 AND placed < $3::date", types=types).drawn[2]
    assert narrow == RangeEnd(1, PLACED, rows=12.3, is_open=True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-5", -5),
        ("12.50", 12.5),
        ("2026-01-01", 1_767_225_600.0),
        ("2026-01-01 00:00:01.5", 1_767_225_601.5),
        ("2026-01-01 02:00:00+02", 1_767_225_600.0),
        ("7 days", 604_800.0),
        ("1 day 01:00:00", 90_000.0),
        ("01:30:00", 5400.0),
        ("", None),
        ("infinity", None),
        ("2026-13-01", None),
        ("1 mon", None),
        ("20260101x", None),
        ("a", None),
    ],
)
def test_numbers_times_and_intervals_are_measured(text: str, expected: float | None) -> None:
    assert measured(text) == expected
