"""The transactions of sessions, as a log's statements follow each other."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from tests.fix_log import counts, load, statements

from pgdyno.workload.capture.logs.entry import LogEntry
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


def test_a_query_that_is_repeated_at_once_is_one_call_however_often() -> None:
    one = statements("BEGIN", "SELECT 1", "SELECT 2", "SELECT 3", "COMMIT")
    other = statements("BEGIN", "SELECT 4", "COMMIT")
    assert transactions(load(*one, *other)) == {(("BEGIN", 1.0), ("SELECT $1", 2.0), ("COMMIT", 1.0)): 2}


_READ, _WRITE = "SELECT a FROM t WHERE b = 1", "UPDATE t SET a = 2 WHERE b = 1"
_READS, _WRITES = ("SELECT a FROM t WHERE b = $1", 1.0), ("UPDATE t SET a = $1 WHERE b = $2", 1.0)
_BEGIN, _COMMIT = ("BEGIN", 1.0), ("COMMIT", 1.0)


def test_the_calls_of_a_loop_stay_together() -> None:
    twice = statements("BEGIN", _READ, _WRITE, _READ, _WRITE, "COMMIT")
    once = statements("BEGIN", _READ, _WRITE, "COMMIT")
    assert transactions(load(*twice, *once, *twice)) == {
        (_BEGIN, _READS, _WRITES, _READS, _WRITES, _COMMIT): 2,
        (_BEGIN, _READS, _WRITES, _COMMIT): 1,
    }


def test_savepoints_one_after_the_other_are_not_nested() -> None:
    sent = "BEGIN", "SAVEPOINT a", _READ, "RELEASE a", "SAVEPOINT b", _WRITE, "RELEASE b", "COMMIT"
    savepoint, release = ("SAVEPOINT pgdyno", 1.0), ("RELEASE pgdyno", 1.0)
    assert transactions(load(*statements(*sent))) == {
        (_BEGIN, savepoint, _READS, release, savepoint, _WRITES, release, _COMMIT): 1
    }
    nested = "BEGIN", "SAVEPOINT a", "SAVEPOINT b", _READ, "RELEASE b", "RELEASE a", "COMMIT"
    [kind] = transactions(load(*statements(*nested)))
    assert kind == (_BEGIN, savepoint, savepoint, _READS, release, release, _COMMIT)


def loop(calls: int, *body: str) -> list[LogEntry]:
    """Return the entries of a transaction that runs statements ``calls`` times."""
    return statements("BEGIN", *(body * calls), "COMMIT")


def test_many_orders_of_a_kind_are_represented_by_some_of_all_lengths() -> None:
    # Loops of 1 to 30 calls: each of the 15 orders stands for two lengths, and is the longer one.
    found = load(*(one for calls in range(1, 31) for one in loop(calls, _READ, _WRITE)))
    kinds = transactions(found)
    assert sorted(len(kind) // 2 - 1 for kind in kinds) == list(range(2, 31, 2))
    assert set(kinds.values()) == {2}
    assert (
        "15 transactions are replayed in the order of similar ones: a kind has at most 15 orders of its "
        "statements" in found.notes()
    )


def test_frequent_orders_keep_their_share_among_many() -> None:
    rare = [one for calls in range(2, 22) for one in loop(calls, _READ, _WRITE)]
    found = load(*(one for _ in range(280) for one in loop(1, _READ, _WRITE)), *rare)
    kinds = transactions(found)
    assert kinds[_BEGIN, _READS, _WRITES, _COMMIT] == 280
    assert sum(kinds.values()) == 300


_TOGETHER = (
    "1 transactions are replayed with all calls of a statement together: they have more than 200 calls, or "
    "too many orders for a file"
)


def test_calls_of_long_transactions_are_together_and_that_is_noted() -> None:
    found = load(*loop(99, _READ, _WRITE), *loop(100, _READ, _WRITE))
    reads, writes = (_READS[0], 100.0), (_WRITES[0], 100.0)
    assert sorted(map(len, transactions(found))) == [4, 200]
    assert transactions(found)[_BEGIN, reads, writes, _COMMIT] == 1
    assert _TOGETHER in found.notes()


def test_a_file_has_no_room_for_many_large_statements() -> None:
    many = f"SELECT f({', '.join(['1'] * 1500)})"
    found = load(*loop(20, many, _READ))
    [kind] = transactions(found)
    assert [times for _, times in kind] == [1.0, 20.0, 20.0, 1.0]
    assert _TOGETHER in found.notes()
    assert not any("together" in note for note in load(*loop(1, many, _READ)).notes())


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
