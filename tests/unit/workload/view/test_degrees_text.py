"""The workers of a workload's statements, as the terminal shows them."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.base.facts import Fact
from pgdyno.model.experiments.captured import CapturedStatement, CapturedWorkload, Omitted
from pgdyno.postgres.parallel_degree import Cause, Degree, Limit, Pools, StatementDegree
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.view.degrees_text import degrees_notes, degrees_table

_FREE = Pools(8, 8, Fact(0, "test"), Fact(1, "test"))
_CAUSES = (
    Cause(Limit.CAP, "max_parallel_workers_per_gather = 0", "it allows none", None),
    Cause(Limit.TABLE_SIZE, "the size of s.t", "it is small", None),
)
DEGREE = Degree("18", 0, (), _CAUSES, (), (), {}, _FREE, None, None, ())
FOUND = (
    StatementDegree("write", 0.5, why_none="UPDATE is never planned with workers", is_never=True),
    StatementDegree("read", 0.25, DEGREE),
    StatementDegree("gone", 0.125, why_none='relation "gone" does not exist'),
    StatementDegree("begin", 0.125, why_none="BEGIN is never planned with workers", is_never=True),
)


def workload(*, time_ms: float) -> CapturedWorkload:
    """A workload whose statements took so long."""
    seen = Seen(calls=3, time_ms=time_ms, rows=1, blocks=1, wal_records=0)
    statements = tuple(CapturedStatement(one.statement, "SELECT 1", seen) for one in FOUND)
    return CapturedWorkload("shop", "18", 1, "d", 1.0, 1, statements, ())


def test_statements_that_may_have_workers_are_rows() -> None:
    table = degrees_table(workload(time_ms=2.0), FOUND)
    assert table.caption == "Workers planned for statements of shop"
    assert [column.title for column in table.columns] == ["Statement", "of the time", "workers", "decided by"]
    assert table.rows == (
        (
            "read",
            "25.0\N{NO-BREAK SPACE}%",
            "0",
            "max_parallel_workers_per_gather = 0 and the size of s.t",
        ),
        ("gone", "12.5\N{NO-BREAK SPACE}%", "–", 'relation "gone" does not exist'),
    )


def test_without_times_the_shares_are_of_calls() -> None:
    assert degrees_table(workload(time_ms=0.0), FOUND).columns[1].title == "of the calls"


def test_what_is_no_row_is_counted() -> None:
    whole = workload(time_ms=2.0)
    never, values = degrees_notes(whole, FOUND)
    assert never == (
        "never with workers: 2 statements more, 62.5\N{NO-BREAK SPACE}%; PostgreSQL plans no workers for "
        "statements that write rows, or begin or end a transaction"
    )
    assert values.startswith("parameters have typical values from the planner's statistics; with other")
    omitted = replace(whole, omitted=(Omitted("COPY …", "why", whole.statements[0].seen),))
    assert list(degrees_notes(omitted, FOUND[1:2])) == [
        "not planned: 1 statement that cannot be replayed",
        values,
    ]


def test_shares_are_of_the_time_or_of_the_calls() -> None:
    def shares(*seen: tuple[int, float]) -> list[float]:
        statements = tuple(
            CapturedStatement(f"s{number}", "SELECT 1", Seen(calls, time_ms, 1, 1, 0))
            for number, (calls, time_ms) in enumerate(seen)
        )
        return list(replace(workload(time_ms=0.0), statements=statements).shares.values())

    assert shares((9, 1.0), (1, 3.0)) == [0.25, 0.75]
    assert shares((9, 0.0), (1, 0.0)) == [0.9, 0.1]
    assert shares((0, 0.0), (0, 0.0)) == [0, 0]
