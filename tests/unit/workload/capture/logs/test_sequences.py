"""The transactions of sessions, as a log's statements follow each other."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from tests.fix_log import counts, load, statements

from pgdyno.workload.capture.logs.load import LoggedLoad
from pgdyno.workload.capture.logs.values import Values


def transactions(found: LoggedLoad) -> dict[tuple[tuple[str, float], ...], float]:
    """Kinds of transactions by their calls, with how many there were."""
    return {
        tuple((found.texts.sql[one], times) for one, times in kind.calls): kind.count
        for kind in found.transactions()
    }


def test_statements_between_begin_and_commit_are_a_transaction() -> None:
    found = load(
        *statements("BEGIN", "SELECT 1", "SELECT 'x'", "SELECT a FROM t", "COMMIT", "SELECT a FROM t")
    )
    assert transactions(found) == {
        (("BEGIN", 1.0), ("SELECT $1", 2.0), ("SELECT a FROM t", 1.0), ("COMMIT", 1.0)): 1,
        (("SELECT a FROM t", 1.0),): 1,
    }
    assert counts(found)["SELECT $1"] == (2, 4.0)


def test_kinds_are_the_same_statements_in_the_same_order_however_often_repeated() -> None:
    one = statements("BEGIN", "SELECT 1", "SELECT 2", "SELECT 3", "COMMIT")
    other = statements("BEGIN", "SELECT 4", "COMMIT")
    assert transactions(load(*one, *other)) == {(("BEGIN", 1.0), ("SELECT $1", 2.0), ("COMMIT", 1.0)): 2}


def test_sessions_are_told_apart() -> None:
    mine, others = (
        statements("BEGIN", "SELECT 1", "COMMIT"),
        statements("BEGIN", "SELECT a FROM t", "COMMIT", session="o"),
    )
    mixed = [one for pair in zip(mine, others, strict=True) for one in pair]
    assert set(transactions(load(*mixed)).values()) == {1}


def test_statements_sent_as_one_text_are_a_transaction_and_share_its_time() -> None:
    found = load(*statements("SELECT 1; SELECT a FROM t"))
    assert transactions(found) == {
        (("BEGIN", 1.0), ("SELECT $1", 1.0), ("SELECT a FROM t", 1.0), ("COMMIT", 1.0)): 1
    }
    assert sum(time_ms for _, time_ms in counts(found).values()) == 2.0
    [kind] = transactions(load(*statements("BEGIN; SELECT 1; COMMIT")))
    assert kind == (("BEGIN", 1.0), ("SELECT $1", 1.0), ("COMMIT", 1.0))


def test_a_block_that_the_log_has_no_beginning_or_no_end_of_is_left_out() -> None:
    found = LoggedLoad("shop", Values(is_keeping=False))
    found.read(statements("SELECT 1", "COMMIT", "SELECT a FROM t", "BEGIN", "SELECT 1"))
    found.finish()
    assert transactions(found) == {(("SELECT a FROM t", 1.0),): 1}
    assert "2 transactions left out: incomplete at the beginning or end of the log" in found.notes()


def test_a_session_without_blocks_in_the_middle_of_a_log_has_single_statements() -> None:
    found = LoggedLoad("shop", Values(is_keeping=False))
    found.read(statements("SELECT 1", "SELECT 1"))
    found.finish()
    assert transactions(found) == {(("SELECT $1", 1.0),): 2}


def test_commit_and_chain_begins_another_block() -> None:
    found = load(*statements("BEGIN", "SELECT 1", "COMMIT AND CHAIN", "SELECT 1", "COMMIT"))
    assert transactions(found) == {
        (("BEGIN", 1.0), ("SELECT $1", 1.0), ("COMMIT AND CHAIN", 1.0)): 1,
        (("BEGIN", 1.0), ("SELECT $1", 1.0), ("COMMIT", 1.0)): 1,
    }


def test_kinds_of_transactions_beyond_the_most_are_counted() -> None:
    found = load(*statements(*(f"SELECT a{number}" for number in range(1003))))
    assert len(transactions(found)) == 1000
    assert "3 transactions left out: they are not of the first 1000 kinds" in found.notes()


TEXTS = st.sampled_from(
    ["BEGIN", "COMMIT", "ROLLBACK", "SELECT 1", "SELECT a FROM t", "SET x = 1", "SAVEPOINT s"]
)


@given(st.lists(st.tuples(st.sampled_from("ab"), TEXTS)))
def test_every_call_is_in_a_transaction_or_said_to_be_cut(calls: Iterable[tuple[str, str]]) -> None:
    found = load(*(one for session, sql in calls for one in statements(sql, session=session)))
    within = sum(kind.count * times for kind in found.transactions() for _, times in kind.calls)
    if not found.sequences.cut:
        ends = sum(calls for sql, (calls, _) in counts(found).items() if sql in {"COMMIT", "ROLLBACK"})
        assert found.calls - ends <= round(within) <= found.calls
