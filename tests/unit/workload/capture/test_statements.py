"""Which statements are replayed."""

from __future__ import annotations

import pytest

from pgdyno.workload.capture.statements import (
    Replayable,
    TransactionPart,
    as_counted,
    depends_on_order,
    executable,
    is_of_others,
    look_at,
    note_on,
    reads_alone,
    same_texts,
    shown,
    writing_command,
)


@pytest.mark.parametrize(
    ("sql", "kind", "is_read_only"),
    [
        ("SELECT 1", TransactionPart.QUERY, True),
        ("SELECT a::numeric(10, 2) FROM t GROUP BY 12 ORDER BY 12", TransactionPart.QUERY, True),
        ("/* app */ select 1", TransactionPart.QUERY, True),
        ("SELECT nextval('ids'::regclass), set_config('app.tenant', $1, $2)", TransactionPart.QUERY, True),
        ("WITH x AS (SELECT 1) SELECT * FROM x", TransactionPart.QUERY, True),
        ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", TransactionPart.QUERY, False),
        ("SELECT * FROM t FOR UPDATE", TransactionPart.QUERY, False),
        ("INSERT INTO t VALUES ($1)", TransactionPart.QUERY, False),
        ("UPDATE t SET a = $1", TransactionPart.QUERY, False),
        ("DELETE FROM t WHERE a = $1", TransactionPart.QUERY, False),
        ("INSERT INTO http (a, b) VALUES ($1, $2)", TransactionPart.QUERY, False),
        ("WITH http(a) AS (SELECT $1) SELECT a FROM http", TransactionPart.QUERY, True),
        ("BEGIN", TransactionPart.BEGIN, True),
        ("begin isolation level serializable", TransactionPart.BEGIN, True),
        ("START TRANSACTION READ ONLY", TransactionPart.BEGIN, True),
        ("COMMIT", TransactionPart.COMMIT, True),
        ("END;", TransactionPart.COMMIT, True),
        ("ROLLBACK", TransactionPart.ROLLBACK, True),
        ("ROLLBACK WORK AND CHAIN", TransactionPart.ROLLBACK, True),
        ("ROLLBACK WORK TO s", TransactionPart.BACK, True),
        ("-- app\nSELECT 1", TransactionPart.QUERY, True),
        ("/* app */ BEGIN", TransactionPart.BEGIN, True),
        ("ROLLBACK TO SAVEPOINT $1", TransactionPart.BACK, True),
        ("SAVEPOINT s", TransactionPart.SAVEPOINT, True),
        ("RELEASE s", TransactionPart.BACK, True),
        ("SET TRANSACTION READ ONLY", TransactionPart.WITHIN, True),
    ],
)
def test_what_can_be_replayed(sql: str, kind: TransactionPart, is_read_only: bool) -> None:  # noqa: FBT001
    assert look_at(sql) == Replayable(kind, is_read_only)


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("COPY t FROM STDIN", "COPY: its rows are not in the server's statistics"),
        ("LISTEN jobs", "LISTEN and NOTIFY affect other sessions"),
        ("VACUUM t", "a utility statement, which changes more than rows"),
        ("CREATE TABLE t (a int)", "a utility statement, which changes more than rows"),
        ("SET work_mem = $1", "settings of sessions are not replayed"),
        ("DISCARD ALL", "settings of sessions are not replayed"),
        ("SET CONSTRAINTS ALL DEFERRED", "a utility statement, which changes more than rows"),
        ("PREPARE q AS SELECT 1", "a replay prepares statements itself"),
        ("DEALLOCATE $1", "a replay prepares statements itself"),
        ("EXECUTE q($1)", "EXECUTE: the statement that it runs is unknown"),
        ("PREPARE TRANSACTION $1", "a utility statement, which changes more than rows"),
        ("DROP TABLE t", "a utility statement, which changes more than rows"),
        ("ROLLBACK PREPARED $1", "a utility statement, which changes more than rows"),
        ('SELECT * FROM public."http_get"($1)', "calls http_get, with effects outside the database"),
        ("SELECT dblink_exec($1, $2)", "calls dblink_exec, with effects outside the database"),
        (
            "SELECT pg_notify($1, $2), pg_terminate_backend($3)",
            "calls pg_notify, pg_terminate_backend, with effects outside the database",
        ),
        ("SELECT FROM WHERE ((", "syntax not supported"),
        ("SELECT 1 FROM t WHERE a = 'secret'", "its text contains constants, which a workload does not keep"),
        ("SELECT 1 FROM t WHERE a IN (4711)", "its text contains constants, which a workload does not keep"),
        ("SELECT f($$secret$$)", "its text contains constants, which a workload does not keep"),
        (
            "SELECT set_config($1, 'secret', $2)",
            "its text contains constants, which a workload does not keep",
        ),
        (r"SELECT E'secret'", "its text contains constants, which a workload does not keep"),
        ("SELECT 1 FROM t WHERE a = -4711", "its text contains constants, which a workload does not keep"),
        ("SELECT f(4711)", "its text contains constants, which a workload does not keep"),
        ("COMMIT PREPARED $1", "a utility statement, which changes more than rows"),
    ],
)
def test_what_is_left_out_has_a_reason(sql: str, why: str) -> None:
    assert look_at(sql) == why


@pytest.mark.parametrize(
    ("sql", "is_reading"),
    [
        ("SELECT log(a), f(a) FROM t", True),
        ("SELECT log(a), app.Store(a) FROM t", False),
        ('SELECT "Store"(a) FROM t', False),
        ('SELECT "STORE"(a) FROM t', True),
        ("SELECT store FROM t", True),
        ("SELECT count(*) FROM t WHERE a = nextval('ids')", False),
        ("INSERT INTO t SELECT f(a) FROM u", False),
        ("BEGIN", False),
    ],
)
def test_a_statement_reads_alone_if_no_function_that_it_calls_may_write(
    sql: str,
    is_reading: bool,  # noqa: FBT001
) -> None:
    assert reads_alone(sql, {"store", "Store", "nextval"}) is is_reading


@pytest.mark.parametrize(
    ("sent", "shown_by_server"),
    [
        ("SELECT extract(epoch from a) FROM t", "SELECT extract($1 from a) FROM t"),
        ("SELECT pg_catalog.extract($1 , a) FROM t", "SELECT pg_catalog.extract($1 , a) FROM t"),
        ("SELECT date '2026-01-01', interval '1' day", "SELECT date $1, interval $2 day"),
        ("SELECT nextval('ids'::regclass), b = 5", "SELECT nextval($1::regclass), b = $2"),
        ("SELECT set_config('app.tenant', $1, $2)", "SELECT set_config($1, $2, $3)"),
        ("SELECT a = ANY (ARRAY[$1::bigint, $2::bigint])", "SELECT a = ANY (ARRAY[$1 /*, ... */])"),
        ("SELECT a FROM t WHERE b = mood'ok'", "SELECT a FROM t WHERE b = mood $1"),
        ("SELECT a % $1 FROM t GROUP BY a % $1", "SELECT a % $1 FROM t GROUP BY a % 10"),
    ],
)
def test_a_statement_is_known_again_as_the_server_counts_it(sent: str, shown_by_server: str) -> None:
    assert as_counted(sent) == as_counted(shown_by_server)


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("SELECT json_object($1 VALUE a) -- hunter2\nFROM t", "SELECT json_object($1 VALUE a) FROM t"),
        ("SELECT json_object($1 VALUE 'hunter2')", "SELECT …"),
        ("SELECT json_object($1 VALUE 4711)", "SELECT …"),
        ("SELECT json_object(/* /* */ hunter2 */ $1 VALUE a)", "SELECT json_object( $1 VALUE a)"),
        ("SELECT json_object($1 VALUE 'hunter2", "SELECT …"),
        ("SELECT json_object($1 VALUE $$hunter2$$)", "SELECT …"),
        ("SET a.b = hunter2", "SET …"),
    ],
)
def test_a_text_of_the_statistics_is_shown_if_no_token_is_a_constant(sql: str, kept: str) -> None:
    assert shown(sql, is_counted=True) == kept


def test_a_list_that_the_server_has_squashed_is_said() -> None:
    note = note_on("select-t", "SELECT 1 FROM t WHERE a IN ($1 /*, ... */)")
    assert note == "select-t: the length of its list is unknown; 1 value is used"
    assert note_on("select-t", "SELECT 1 FROM t WHERE a IN ($1)") is None


@pytest.mark.parametrize(
    ("shown", "sent"),
    [
        ("SAVEPOINT $1", "SAVEPOINT pgdyno"),
        ("RELEASE SAVEPOINT $1;", "RELEASE SAVEPOINT pgdyno"),
        ("ROLLBACK TO $1", "ROLLBACK TO pgdyno"),
        ('SAVEPOINT "mine"', "SAVEPOINT pgdyno"),
        ("ROLLBACK WORK TO SAVEPOINT s140_x2;", "ROLLBACK WORK TO SAVEPOINT pgdyno"),
        ("ROLLBACK", "ROLLBACK"),
        (" SELECT $1 ; ", "SELECT $1"),
    ],
)
def test_all_savepoints_get_one_name_as_statistics_have_none(shown: str, sent: str) -> None:
    assert executable(shown) == sent


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("ALTER ROLE app PASSWORD 'hunter2'", "ALTER ROLE …"),
        ("CALL pr('hunter2')", "CALL …"),
        ("DO $$ hunter2 $$", "DO …"),
        ("SET application_name = 'hunter2'", "SET …"),
        ("CREATE TABLE a AS SELECT 'hunter2'", "CREATE TABLE …"),
        ("COPY (SELECT 'hunter2') TO STDOUT", "COPY …"),
        ("SELECT 1 FROM t WHERE a = 'hunter2'", "SELECT …"),
        ("SELECT /* hunter2 */ pg_notify($1, $2) -- hunter2", "SELECT pg_notify($1, $2)"),
    ],
)
def test_what_is_not_replayed_is_shown_without_constants(sql: str, kept: str) -> None:
    assert shown(sql) == kept


def test_comments_are_not_kept() -> None:
    assert executable("SELECT /* user=alice */ a -- b\nFROM t;") == "SELECT   a  \nFROM t"
    assert executable("""SELECT "/* a */" FROM t""") == """SELECT "/* a */" FROM t"""


def test_one_text_with_several_ids_is_one_statement() -> None:
    assert same_texts({1: "SELECT 1", 2: "SELECT  2", 3: "SELECT 1; -- again"}) == {1: 1, 2: 2, 3: 1}
    assert same_texts({1: 'SAVEPOINT "s1_x1"', 2: 'SAVEPOINT "s1_x2"'}) == {1: 1, 2: 1}  # until PostgreSQL 16


@pytest.mark.parametrize(
    ("sql", "command"),
    [
        ("SELECT a FROM t WHERE b = $1", None),
        ("SELECT a FROM t FOR UPDATE", None),
        ("WITH gone AS (DELETE FROM t RETURNING a) SELECT a FROM gone", None),
        ("WITH new AS (SELECT $1 AS a) INSERT INTO t SELECT a FROM new", "INSERT"),
        ("update t set a = $1", "UPDATE"),
        ("DELETE FROM t", "DELETE"),
        ("MERGE INTO t USING s ON t.a = s.a WHEN MATCHED THEN DELETE", "MERGE"),
        ("VACUUM t", None),
    ],
)
def test_a_statement_writes_by_its_outermost_command(sql: str, command: str | None) -> None:
    assert writing_command(sql) == command


def test_checks_of_foreign_keys_and_statistics_are_not_of_an_application() -> None:
    # As servers count a deferred key of two columns, which they check at COMMIT.
    check = (
        'SELECT $3 FROM ONLY "public"."parent" x WHERE "id" OPERATOR(pg_catalog.=) $1 AND "b" '
        "OPERATOR(pg_catalog.=) $2 FOR KEY SHARE OF x"
    )
    assert is_of_others(check)
    assert is_of_others("SELECT calls FROM pg_stat_statements")
    assert not is_of_others("SELECT id FROM parent x WHERE id = $1 FOR KEY SHARE OF x")


@pytest.mark.parametrize(
    ("sql", "decides"),
    [
        ("SELECT id FROM t WHERE id = $1", False),
        ("SELECT id FROM t ORDER BY made", False),
        ("SELECT DISTINCT a FROM t", False),
        ("SELECT count(*), rank() OVER (ORDER BY a) FROM t GROUP BY a", False),
        ("SELECT id FROM t ORDER BY made LIMIT 1", True),
        ("SELECT id FROM t FETCH FIRST ROW ONLY", True),
        ("SELECT DISTINCT ON (a) a, b FROM t ORDER BY a", True),
        ("SELECT string_agg(name, $1) FROM t", True),
        ("SELECT id, row_number() OVER (ORDER BY a) FROM t", True),
    ],
)
def test_the_order_of_reading_decides_answers_among_equal_rows(sql: str, *, decides: bool) -> None:
    assert depends_on_order(sql) is decides
