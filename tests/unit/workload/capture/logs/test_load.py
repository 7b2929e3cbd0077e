"""The load that a log's entries have: counts of statements, values, times and pauses."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fix_log import READ, counts, entry, load, statements

from pgdyno.postgres.guc import RESET_SESSION_SETTINGS, SETTINGS_QUERY
from pgdyno.workload.capture.logs.entry import LogEntry
from pgdyno.workload.capture.logs.load import LoggedLoad
from pgdyno.workload.capture.logs.values import Values


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
    assert "2 statements failed and are left out; others of their transactions are not" in found.notes()


def test_of_a_sample_only_failures_in_its_blocks_are_known_to_be_of_it() -> None:
    log = (
        entry("division by zero", severity="ERROR", query="SELECT 1 / 0"),  # of another transaction
        entry("duration: 0.1 ms  statement: BEGIN"),
        entry("division by zero", severity="ERROR", query="SELECT 2 / 0"),
        entry("duration: 0.1 ms  statement: ROLLBACK"),
        entry("division by zero", severity="ERROR", query="SELECT 3 / 0"),
    )
    found = LoggedLoad("shop", Values(is_keeping=False), is_sample=True)
    found.read(log)
    found.finish()
    assert "1 statements failed and are left out; others of their transactions are not" in found.notes()
    assert "3 statements failed and are left out; others of their transactions are not" in load(*log).notes()


def test_execute_that_failed_is_not_counted() -> None:
    prepared = "prepare: PREPARE p (int) AS SELECT a FROM t WHERE b = $1"
    found = load(
        entry("statement: EXECUTE p(1)", prepared),
        entry("statement: EXECUTE p(2)", prepared),
        entry("division by zero", severity="ERROR", query="EXECUTE p(2)"),
    )
    assert counts(found) == {"SELECT a FROM t WHERE b = $1::int": (1, 0.0)}


def test_statements_sent_with_execute_or_prepare_are_counted() -> None:
    prepared = "prepare: PREPARE p AS SELECT a FROM t"
    found = load(
        entry("statement: EXECUTE p(1); SELECT f(3)", prepared),
        entry("statement: PREPARE p AS SELECT a FROM t; UPDATE t SET a = 1"),
    )
    assert {sql: calls for sql, (calls, _) in counts(found).items() if sql not in {"BEGIN", "COMMIT"}} == {
        "EXECUTE …": 1, "SELECT f($1)": 1, "PREPARE p …": 1, "UPDATE t SET a = $1": 1,
    }  # fmt: skip


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
    assert found.elsewhere == {"bank": 1}


_OWN_FIRST = (
    """SET LOCAL "transaction_timeout" TO '0'; SET LOCAL "statement_timeout" TO '10s'; """
    "SELECT pg_catalog.pg_backend_pid()"
)
_OWN_LOOK = "SELECT pg_catalog.set_config('transaction_read_only', 'on', true); SELECT b FROM t"


def test_statements_of_pgdyno_s_sessions_are_left_out_without_their_names() -> None:
    session = (
        """SET "statement_timeout" TO '10s'; SET "lock_timeout" TO '10s'; SET "search_path" TO ''; """
        """SET "application_name" TO 'pgdyno'"""
    )
    own = statements(_OWN_FIRST, session, "ALTER SYSTEM SET log_statement = 'all'")
    again = [entry("connection received: host=[local]"), *statements("SELECT a FROM t")]
    assert counts(load(*own, *again)) == {"SELECT a FROM t": (1, 2.0)}


def test_statements_of_pgdyno_in_a_session_of_a_pooler_are_left_out() -> None:
    block = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {_OWN_LOOK}"
    found = load(
        *statements(_OWN_FIRST, _OWN_LOOK, "SELECT a FROM t", block),
        entry("execute <unnamed>: SELECT c FROM t WHERE d = $1", "Parameters: $1 = '1'"),
        entry("syntax error", severity="ERROR", query="SELEC"),
        *statements("ROLLBACK", "SELECT a FROM t"),
    )
    assert counts(found) == {"SELECT a FROM t": (2, 4.0)}
    assert not any("failed" in note for note in found.notes())


_OWN_SETTINGS = RESET_SESSION_SETTINGS.replace("%s", "$1"), SETTINGS_QUERY
READS, ROLLBACK = f"execute <unnamed>: {READ}", "statement: ROLLBACK"


@pytest.mark.parametrize(
    "named",
    [
        {"statement: BEGIN", ROLLBACK},  # logged when they have ended
        {"statement: BEGIN", f"execute <unnamed>: {_OWN_SETTINGS[0]}"},  # logged before they run
    ],
)
def test_the_settings_that_pgdyno_reads_without_its_name_are_left_out(named: set[str]) -> None:
    messages = "statement: BEGIN", *(f"execute <unnamed>: {one}" for one in _OWN_SETTINGS), ROLLBACK
    own = [entry(one, application="pgdyno" if one in named else "") for one in messages]  # as reset
    again = entry(READS, "Parameters: $1 = '42'", application="")
    found = load(*own, again, *own, again)
    assert counts(found) == {READ: (2, 0.0)}


def test_messages_that_came_during_a_statement_are_about_none() -> None:
    raised = "SELECT f(1)"
    found = load(
        entry("statement: SELECT f(1)"),
        entry("audit: update t", query=raised),
        entry("statement: DELETE FROM t", query=raised),
    )
    assert counts(found) == {"SELECT f($1)": (1, 0.0)}
    assert found.foreign == 0


def test_entries_without_a_database_are_of_no_other_one() -> None:
    found = load(*(entry("checkpoint starting: time", database=name) for name in ("", "[unknown]", "bank")))
    assert found.elsewhere == {"bank": 1}


def test_names_of_other_databases_are_limited() -> None:
    found = load(*(entry("statement: SELECT 1", database=f"d{number}") for number in range(1500)))
    assert len(found.elsewhere) == 1001
    assert found.elsewhere["…"] == 500


@pytest.mark.parametrize(
    "message",
    [
        "Dauer: 0.062 ms",
        "Dauer: 0.062 ms  Anweisung: SELECT 1",
        "Anweisung: select 1",
        "Ausführen <unnamed>: SELECT 1",
        "durée : 0.062 ms, instruction : SELECT 1",
        "продолжительность: 0.062 мс  оператор: SELECT 1",
        "期間: 0.062 ミリ秒  文: SELECT 1",
        "varaktighet 0.062 ms",
        "명령 구문: SELECT 1",
        "выполнение s/c: SELECT 1",
    ],
)
def test_messages_in_another_language_are_counted(message: str) -> None:
    """As PostgreSQL 15's translations have them."""
    found = load(entry("statement: SELECT 2"), entry(message))
    assert counts(found) == {"SELECT $1": (1, 0.0)}
    assert "1 messages are not in English: their statements are left out" in found.notes()


@pytest.mark.parametrize(
    "message",
    [
        "duration: 3.100 ms  plan:\nQuery Text: SELECT 1",
        "checkpoint complete: wrote 35 buffers (0.2%); write=3.512 s",
        "AUDIT: SESSION,1,1,READ,SELECT,,,SELECT 1,<none>",
        "cron job 1 starting: SELECT refresh()",
        "audit of one table: update t",
        "process 5936 still waiting for ShareLock on transaction 7 after 1000.123 ms",
    ],
)
def test_other_messages_are_not_of_another_language(message: str) -> None:
    assert load(entry(message)).foreign == 0
    assert load(entry("audit: update t", severity="NOTICE")).foreign == 0


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
        "10 calls left out: their statements came after the first 5000, or 8000000 characters"
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
    assert "1 calls left out: their statements have more than 2000 parameters" in found.notes()


def test_numbers_of_the_first_parameters_alone_are_looked_at() -> None:
    found = load(*statements(*[f"SELECT {', '.join(map(str, range(500)))}"] * 3))
    assert [sorted(call) for call in found.values.numbers[1]] == [list(range(1, 101))] * 3
    block = statements("BEGIN", *[f"SELECT {', '.join(map(str, range(500)))}"] * 6, "COMMIT")
    assert {number for _, number in load(*block * 6).dependencies.earlier()} <= set(range(1, 101))


def at(second: float, message: str, session: str = "s") -> LogEntry:
    return LogEntry(second, session, "shop", "", "LOG", message, line=1)


def test_without_times_the_rate_is_unknown_and_that_is_said() -> None:
    found = load(*statements("SELECT 1", "SELECT 2"))
    assert (found.seconds, found.clients) == (0.0, 1.0)
    [note] = found.notes()
    assert note.startswith("the log has no timestamps: the rate of transactions")
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


def test_clients_are_no_more_than_sessions_where_durations_exceed_the_log() -> None:
    """The first statement began half a minute before the log, and PostgreSQL would not overlap them."""
    long = "duration: 31000.0 ms  statement: SELECT 1"
    assert load(at(1.0, long), at(2.0, long)).clients == 1.0
    one = load(at(31.0, "duration: 31000.0 ms  statement: BEGIN"), at(32.0, "statement: COMMIT"))
    assert (one.seconds, one.clients) == (1.0, 1.0)
    two = load(at(1.0, long, "a"), at(1.5, long, "b"), at(2.0, long, "a"), at(2.0, long, "b"))
    assert (two.clients, two.sessions) == (2.0, 2.0)


def test_a_session_that_begins_within_the_log_is_at_work_from_then_on() -> None:
    found = load(
        at(0.0, "duration: 0.0 ms  statement: SELECT 1", "a"),
        at(8.5, "duration: 500.0 ms  statement: SELECT 1", "b"),  # from 8 on
        at(10.0, "duration: 1500.0 ms  statement: SELECT 1", "b"),
        at(10.0, "duration: 0.0 ms  statement: SELECT 1", "a"),
    )
    assert found.clients == 0.2


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abc"),
            st.integers(0, 5000),
            st.integers(0, 9000),
            st.sampled_from(["BEGIN", "SELECT 1", "COMMIT", "SELECT 1; SELECT 2"]),
        ),
        min_size=2,
    )
)
def test_never_are_more_clients_at_work_than_sessions(statements: list[tuple[str, int, int, str]]) -> None:
    found = load(
        at(0.5, "connection received: host=[local]"),
        *(
            at(ended_ms / 1000, f"duration: {took_ms}.0 ms  statement: {sql}", session)
            for session, ended_ms, took_ms, sql in sorted(statements, key=lambda one: one[1])
        ),
    )
    if found.sessions is not None:
        assert found.clients <= found.sessions + 1e-9


def test_sessions_are_the_mean_of_those_that_execute_statements() -> None:
    one, silent = "duration: 0.0 ms  statement: SELECT 1", "connection authorized: user=app database=shop"
    following = [at(second + part, one, f"s{second}") for second in range(5) for part in (0.1, 0.6)]
    assert load(*following).sessions == pytest.approx(5 * 0.5 / 4.5)
    assert load(*following, at(2.1, one, "t"), at(4.6, one, "t")).sessions == pytest.approx(5.0 / 4.5)
    assert load(*following, at(2.1, silent, "t"), at(4.6, silent, "t")).sessions == pytest.approx(2.5 / 4.5)
    assert load(at(1.0, one), at(2.0, one)).sessions is None


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
    assert not any("several protocols" in note for note in load(*sent, *statements("SELECT 1")).notes())
    mixed = load(*sent, *statements(*["SELECT 1"] * 10)).notes()
    [note] = [note for note in mixed if "several protocols" in note]
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
