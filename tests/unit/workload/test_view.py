"""A captured workload, its workers and its likeness, as terminal and page show them."""

from __future__ import annotations

from dataclasses import replace

from rich.console import Console
from tests.golden.synthetic import experiment

from pgdyno.base.facts import Fact
from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedStatement,
    CapturedTransaction,
    CapturedWorkload,
    Invariant,
    Is,
    NoRows,
    Omitted,
    RangeEnd,
    Unchanged,
)
from pgdyno.model.experiments.likeness import Likeness, StatementLikeness, likeness_words
from pgdyno.postgres.parallel_degree import Cause, Degree, Limit, Pools, StatementDegree
from pgdyno.postgres.statement_counts import Seen
from pgdyno.results.page import render_page
from pgdyno.results.verdict_text import verdict_table
from pgdyno.workload.view import (
    degrees_notes,
    degrees_table,
    likeness_sentences,
    likeness_table,
    workload_text,
)

TRANSACTION = CapturedTransaction(600.0, (CapturedCall("s", 1.0),))
WORKLOAD = CapturedWorkload("w", "18", 1, "d", 60.0, 2, (), (TRANSACTION,))
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
HALF, WHOLE = {"calls": 0.5, "time": 0.25}, {"calls": 1.0, "time": 0.75}
ALIKE = Likeness(
    {"calls": 0.5, "time": 0.95},
    (
        StatementLikeness("select-t", HALF, WHOLE, 1.5, 2.5),
        StatementLikeness("update-t", {"calls": 0.5, "time": 0.75}, {"calls": 0.0, "time": 0.0}, 3.0, None),
    ),
)
SENTENCE = (
    "shop: likeness 0.50 (calls 0.50, time 0.95): this is not the workload; it differs most in "
    "calls, above all for select-t (share 50.0% → 100.0%)"
)


def shown(pauses_s: tuple[float, ...]) -> str:
    workload = replace(WORKLOAD, pauses_s=pauses_s, sessions=9 if pauses_s else None)
    return workload_text(workload).replace("\N{NO-BREAK SPACE}", " ")


def test_pauses_are_shown_with_what_replays_them() -> None:
    assert (
        "  9 sessions pausing between two transactions for 20 ms (median; 1.01 s on average); "
        "replay --pauses reproduces the pauses\n"
    ) in shown((0.01, 0.02, 3.0))


def test_sessions_that_do_not_pause_are_said_not_to() -> None:
    assert "sessions begin the next transaction without a pause" in shown((0.0, 0.0))
    assert "pause" not in shown(())


def test_the_ends_of_ranges_are_shown_with_each_other() -> None:
    ends = RangeEnd(1, "s.t.c", (5,)), RangeEnd(2, "s.t.c", is_lower=True)
    calls = CapturedTransaction(1.0, (CapturedCall("s", 1.0, ends),))
    shown = workload_text(replace(WORKLOAD, transactions=(calls,)))
    assert "  s (end of the range from $1, beginning of the range to $2)\n" in shown


def test_parameters_that_favour_values_are_named() -> None:
    seen = Seen(1, 1.0, 1, 1, 0)
    plain, hot = (CapturedStatement(name, "SELECT $1, $2", seen) for name in ("plain", "hot"))
    favouring = replace(hot, favours={1: (0.0, 1.0), 2: (0.5, 0.5)})
    assert """
Some values are used more often than their rows are many, as in the original:
  hot: $1, $2
""" in workload_text(replace(WORKLOAD, statements=(plain, favouring)))
    assert "more often" not in workload_text(replace(WORKLOAD, statements=(plain,)))


def test_invariants_are_shown_with_what_their_queries_return() -> None:
    invariants = (
        Invariant("none owes", "SELECT count(*)\n  FROM t", Is(0)),
        Invariant("open", "SELECT true", Is(value=True)),
        Invariant("sums stay", "SELECT sum(a) FROM t", Unchanged()),
        Invariant("none is lost", "SELECT 1 FROM t", NoRows()),
    )
    assert workload_text(replace(WORKLOAD, invariants=invariants)).endswith("""
Invariants, checked on each server before and after a load:
  none owes: SELECT count(*) FROM t returns 0
  open: SELECT true returns t
  sums stay: SELECT sum(a) FROM t returns the same after the load
  none is lost: SELECT 1 FROM t returns no row
""")
    assert "Invariants" not in workload_text(WORKLOAD)


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


def test_the_one_number_says_whether_it_is_the_workload() -> None:
    assert likeness_words(replace(ALIKE, by_quantity={"calls": 0.9, "time": 1.0})) == (
        "Likeness 0.90 (calls 0.90, time 1.00): this is the workload"
    )
    assert list(likeness_sentences(replace(experiment(), likenesses={"shop": ALIKE}))) == [SENTENCE]


def test_assumed_transactions_are_stated_with_the_likeness() -> None:
    alike = replace(ALIKE, by_quantity={"calls": 0.95})
    assert likeness_words(replace(alike, assumed_share=0.125)).replace("\N{NO-BREAK SPACE}", " ") == (
        "Likeness 0.95 (calls 0.95): this is the workload. Which statements form 12.5 % of its "
        "transactions is partly assumed: see its notes"
    )
    assert likeness_words(replace(alike, assumed_share=0.004)) == (
        "Likeness 0.95 (calls 0.95): this is the workload"
    )


def test_quantities_of_transactions_are_shown_if_they_differ() -> None:
    of_transactions = {"rollbacks": (0.6, 0.0), "failed transactions": (0.0, 0.0), "sessions": (4.0, 5.0)}
    each = {"calls": 0.98, "rollbacks": 0.4, "failed transactions": 1.0, "sessions": 0.8}
    found = replace(ALIKE, by_quantity=each, of_transactions=of_transactions)
    assert likeness_words(found) == (
        "Likeness 0.40 (calls 0.98, rollbacks 0.40, sessions 0.80): this is not the workload; it differs "
        "most in rollbacks (60.0% → 0.0% of the transactions)"
    )
    assert likeness_words(replace(found, by_quantity={**each, "rollbacks": 0.99})) == (
        "Likeness 0.80 (calls 0.98, rollbacks 0.99, sessions 0.80): this is a similar workload, which "
        "differs most in sessions (4 → 5)"
    )
    assert [one.title for one in likeness_table(found).columns] == ["Statement", "calls", "ms/call"]


def test_statements_come_by_their_time_in_the_original() -> None:
    assert likeness_table(ALIKE).rows == (
        ("update-t", "50.0% → 0.0%", "75.0% → 0.0%", "3.000 → –"),
        ("select-t", "50.0% → 100.0%", "25.0% → 75.0%", "1.500 → 2.500"),
    )


def test_page_and_terminal_show_it_beside_the_verdicts() -> None:
    found = replace(experiment(), likenesses={"shop": ALIKE})
    console = Console(width=200, force_terminal=False)
    with console.capture() as captured:
        console.print(verdict_table(found))
    assert f"{SENTENCE}." in captured.get()
    page = render_page(found)
    assert f"<p>{SENTENCE}.</p>" in page
    assert "50.0% → 100.0%" in page
