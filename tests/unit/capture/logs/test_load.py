"""The load that a log's entries have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pgdyno.capture.logs.entry import LogEntry
from pgdyno.capture.logs.load import LoggedLoad
from pgdyno.capture.logs.values import Values

READ = "SELECT a FROM t WHERE b = $1"


def entry(message: str, detail: str = "", session: str = "s", line: int | None = 2, **more: str) -> LogEntry:
    given = {"severity": "LOG", "database": "shop", "application": "psql", "query": "", **more}
    return LogEntry(at_s=None, session=session, message=message, detail=detail, line=line, **given)


def load(*entries: LogEntry | None, is_keeping: bool = False) -> LoggedLoad:
    found = LoggedLoad("shop", Values(is_keeping))
    found.read((entry("connection authorized: user=app database=shop"), *entries))
    found.finish()
    return found


def statements(*sql: str, session: str = "s") -> list[LogEntry]:
    return [entry(f"duration: 2.0 ms  statement: {one}", session=session) for one in sql]


def transactions(found: LoggedLoad) -> dict[tuple[tuple[str, float], ...], float]:
    """Kinds of transactions by their calls, with how many there were."""
    return {
        tuple((found.texts.sql[one], times) for one, times in kind.calls): kind.count
        for kind in found.transactions()
    }


def counts(found: LoggedLoad) -> dict[str, tuple[int, float]]:
    return {found.texts.sql[one]: (seen.calls, seen.time_ms) for one, seen in found.seen().items()}


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


def test_a_duration_belongs_to_the_statement_before_it_and_to_no_parse_or_bind() -> None:
    found = load(
        entry(f"duration: 7.0 ms  parse <unnamed>: {READ}"),
        entry(f"duration: 8.0 ms  bind <unnamed>: {READ}", "Parameters: $1 = '42'"),
        entry(f"execute <unnamed>: {READ}", "Parameters: $1 = '42'"),
        entry("duration: 2.5 ms"),
        entry("duration: 9.0 ms"),
    )
    assert counts(found) == {READ: (1, 2.5)}


def test_without_durations_time_is_unknown_and_that_is_said() -> None:
    found = load(entry("statement: SELECT 1"), entry("statement: SELECT 2"))
    assert counts(found) == {"SELECT $1": (2, 0.0)}
    assert (
        "the log has no durations: log_min_duration_statement = 0 or log_duration adds them" in found.notes()
    )


def test_a_statement_that_failed_is_not_counted() -> None:
    found = load(
        entry("statement: SELECT 1"),
        entry("division by zero", severity="ERROR", query="SELECT 1"),
        entry("statement: SELECT a FROM t"),
        entry("syntax error", severity="ERROR", query="SELEC"),
    )
    assert counts(found) == {"SELECT a FROM t": (1, 0.0)}


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
    assert "2 transactions are cut by the log's beginning or end, and left out" in found.notes()


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


def test_savepoints_of_any_name_are_one_statement() -> None:
    found = load(
        *statements(
            "BEGIN", 'SAVEPOINT "a 1"', "RELEASE SAVEPOINT b", "SAVEPOINT c", "ROLLBACK TO c", "COMMIT"
        )
    )
    assert {"SAVEPOINT pgdyno", "RELEASE SAVEPOINT pgdyno", "ROLLBACK TO pgdyno"} <= counts(found).keys()


def test_utility_statements_keep_their_first_words_alone() -> None:
    found = load(
        *statements("SET application_name = 'secret'", "SET work_mem = 5", "CREATE TABLE secret (a int)")
    )
    assert counts(found) == {"SET …": (2, 4.0), "CREATE TABLE …": (1, 2.0)}


def test_other_databases_pgdyno_itself_and_monitoring_are_left_out() -> None:
    found = load(
        entry("statement: SELECT 1", database="bank"),
        entry("statement: SELECT 2", application="pgdyno"),
        entry("statement: SELECT * FROM pg_stat_activity"),
        entry("statement: SELECT a FROM t"),
    )
    assert counts(found) == {"SELECT a FROM t": (1, 0.0)}
    assert found.elsewhere == 1


def test_values_are_kept_only_if_told_to() -> None:
    entries = [
        entry(f"execute s: {READ} LIMIT 5", f"Parameters: $1 = {value}") for value in ("'7'", "'7'", "NULL")
    ]
    kept = load(*entries, is_keeping=True).values.kept
    assert dict(kept) == {1: {1: {"7": 2, None: 1}, 2: {"5": 3}}}
    assert dict(load(*entries).values.kept) == {}


def test_at_most_a_thousand_values_of_a_parameter_are_kept() -> None:
    found = load(*(entry(f"statement: SELECT {number}") for number in range(1, 1500)), is_keeping=True)
    assert len(found.values.kept[1][1]) == 1000
    assert [note for note in found.notes() if note.startswith("1 parameters had more values than are kept")]


def test_statements_beyond_the_most_are_counted() -> None:
    found = load(*statements(*(f"SELECT a{number}" for number in range(5010))))
    assert len(found.texts.sql) == 5000
    assert (
        "10 calls are left out, as their statements came after the first 5000, or 8000000 characters"
        in found.notes()
    )


def test_texts_take_some_megabytes_at_most() -> None:
    long = "a" * 100_000
    found = load(*statements(*(f"SELECT {long}{number}" for number in range(100))))
    assert sum(map(len, found.texts.sql.values())) <= 8_000_000
    assert found.texts.more == 100 - len(found.texts.sql) > 0


def test_statements_of_very_many_parameters_are_left_out() -> None:
    found = load(*statements(f"SELECT {', '.join(['1'] * 2001)}", f"SELECT {', '.join(['1'] * 2000)}"))
    assert [len(types) for types in found.texts.types.values()] == [2000]
    assert "1 calls are left out, as their statements have more than 2000 parameters" in found.notes()


def test_numbers_of_the_first_parameters_alone_are_looked_at() -> None:
    found = load(*statements(*[f"SELECT {', '.join(map(str, range(500)))}"] * 3))
    assert [sorted(call) for call in found.values.numbers[1]] == [list(range(1, 101))] * 3
    block = statements("BEGIN", *[f"SELECT {', '.join(map(str, range(500)))}"] * 6, "COMMIT")
    assert {number for _, number in load(*block * 6).equalities.earlier()} <= set(range(1, 101))


def test_kinds_of_transactions_beyond_the_most_are_counted() -> None:
    found = load(*statements(*(f"SELECT a{number}" for number in range(1003))))
    assert len(transactions(found)) == 1000
    assert "3 transactions are left out, as their kinds came after the first 1000" in found.notes()


def at(second: float, message: str, session: str = "s") -> LogEntry:
    return LogEntry(second, session, "shop", "", "LOG", message, line=1)


def test_without_times_the_rate_is_unknown_and_that_is_said() -> None:
    found = load(*statements("SELECT 1", "SELECT 2"))
    assert (found.seconds, found.clients) == (0.0, 1.0)
    [note] = found.notes()
    assert note.startswith("the log has no times, so it is not known how often a second transactions came")
    assert not list(load(at(1.0, "duration: 1.0 ms  statement: SELECT 1")).notes())


def test_time_between_files_does_not_count_and_shared_time_counts_once() -> None:
    found = LoggedLoad("shop", Values(is_keeping=False))
    for times in ((100.0, 110.0), (), (5.0, 0.0, 10.0), (8.0, 12.0), (9.0, 9.5)):
        found.read([at(second, "statement: SELECT 1") for second in times])
    assert found.seconds == 22.0


def test_clients_are_those_in_transactions() -> None:
    blocks = [
        at(second, f"duration: 0.0 ms  statement: {sql}", session)
        for second, sql in ((0.0, "BEGIN"), (10.0, "SELECT 1"), (10.0, "COMMIT"))
        for session in ("a", "b", "c")
    ]
    found = load(*blocks)
    assert (found.seconds, found.clients) == (10.0, 3.0)


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


def test_queries_are_counted_by_how_they_were_sent() -> None:
    found = load(
        *statements("BEGIN", "SELECT 1; SELECT 2", "COMMIT", "VACUUM t"),
        entry(f"execute <unnamed>: {READ}"),
        *(entry(f"execute S_1: {READ}") for _ in range(4)),
        entry("execute S_2: BEGIN"),
    )
    assert found.sent == {"simple": 2, "extended": 1, "prepared": 4}


def test_a_query_with_a_name_that_is_read_for_each_call_has_none() -> None:
    """As PDO does it; a statement that fails when it is read is never executed."""
    read, call = (
        entry(f"duration: 0.1 ms  parse pdo_1: {READ}"),
        entry(f"duration: 0.1 ms  execute pdo_1: {READ}"),
    )
    begin = entry("duration: 0.1 ms  parse pdo_2: BEGIN")
    assert load(read, call, begin, read, call, call).sent == {"prepared": 1, "extended": 2}
    assert load(read, read, call).sent == {"extended": 1}


def test_mixed_protocols_are_noted_and_a_few_calls_are_not() -> None:
    sent = [entry(f"execute S_1: {READ}")] * 30
    assert not any("several ways" in note for note in load(*sent, *statements("SELECT 1")).notes())
    mixed = load(*sent, *statements(*["SELECT 1"] * 10)).notes()
    [note] = [note for note in mixed if "several ways" in note]
    assert "75\N{NO-BREAK SPACE}% prepared by name, 25\N{NO-BREAK SPACE}% as simple queries" in note


def test_a_session_pauses_between_its_transactions() -> None:
    found = load(
        at(10.0, "duration: 500.0 ms  statement: SELECT 1"),  # from 9.5 on
        at(10.5, "statement: BEGIN"),  # 0.5 s after
        at(10.6, "duration: 100.0 ms"),
        at(19.0, "duration: 1000.0 ms  statement: SELECT 1"),  # a pause within a transaction
        at(20.0, "duration: 0.0 ms  statement: COMMIT"),
        at(20.25, "duration: 0.0 ms  statement: SELECT 1", session="o"),  # another session
        at(27.0, "duration: 4000.0 ms  statement: SELECT 1"),  # 3 s after
        at(29.0, "duration: 0.0 ms  statement: SELECT 1; SELECT 2"),  # 2 s after
    )
    assert found.pauses_s == [0.5, 3.0, 2.0]


def test_a_pause_is_not_known_without_durations_or_milliseconds_or_after_a_failure() -> None:
    timed, untimed = "duration: 0.0 ms  statement: SELECT 1", "statement: SELECT 1"
    assert load(at(1.5, timed), at(2.0, timed)).pauses_s == [0.5]
    assert load(at(1.0, timed), at(2.0, timed)).pauses_s == ()
    assert load(at(1.5, untimed), at(2.0, untimed)).pauses_s == []
    failed = replace(at(1.7, "division by zero"), severity="ERROR", query="SELECT 1 / 0")
    assert load(at(1.5, timed), at(1.6, "statement: SELECT 1 / 0"), failed, at(2.0, timed)).pauses_s == []
    assert load(*statements("SELECT 1", "SELECT 1")).pauses_s == ()


def test_a_transaction_of_which_the_log_has_the_end_alone_has_no_pauses() -> None:
    found = LoggedLoad("shop", Values(is_keeping=False))
    one, end = "duration: 0.0 ms  statement: SELECT 1", "duration: 0.0 ms  statement: COMMIT"
    entries = (at(1.5, one), at(2.5, one), at(3.5, end), at(5.5, one))
    found.read(replace(entry, line=7) for entry in entries)
    found.finish()
    assert found.pauses_s == [2.0]
