"""Counted statements, added up by shape."""

from __future__ import annotations

import pytest

from pgdyno.postgres.sampling.statement_statistics import CountedTimes
from pgdyno.profile.reading.statement_work import times_of
from pgdyno.profile.records.profile_record import StatementTime

POINT = "SELECT c FROM sbtest{} WHERE id=$1"


def counted(sql: str, number: int, planning_ms: float) -> CountedTimes:
    return CountedTimes(sql, 20, planning_ms, 2.0, 30, 40, 50, 0, number)


def named(sql: str) -> str | None:
    return "point-select" if sql.startswith("SELECT c") else None


def test_statements_of_numbered_tables_are_one_and_have_the_most_time_first() -> None:
    every = [counted("COMMIT", 1, 0.0), counted(POINT.format(1), 2, 6.0), counted(POINT.format(12), 3, 1.0)]
    waits = {(2, "CPU"): 6, (3, "CPU"): 1, (3, "IO:DataFileRead"): 1, (9, "Lock:tuple"): 5}
    assert times_of(every, 10, waits, named) == (
        StatementTime(
            "SELECT c FROM sbtest# WHERE id=$1",
            calls=4.0,
            planning_us=700.0,
            executing_us=400.0,
            rows=6.0,
            blocks=8.0,
            wal_records=10.0,
            name="point-select",
            waits=(("CPU", 7 / 8), ("IO:DataFileRead", 1 / 8)),
        ),
        StatementTime("COMMIT", 2.0, 0.0, 200.0, 3.0, 4.0, 5.0),
    )


def test_a_single_statement_keeps_its_text_and_three_waits() -> None:
    waits = {(1, event): samples for event, samples in (("a", 1), ("b", 2), ("c", 3), ("CPU", 4))}
    [found] = times_of([counted(POINT.format(7), 1, 0.0)], 20, waits, lambda _: None)
    assert found.sql == POINT.format(7)
    assert found.name == ""
    assert [event for event, _ in found.waits] == ["CPU", "c", "b"]
    assert [share for _, share in found.waits] == pytest.approx([0.4, 0.3, 0.2])
