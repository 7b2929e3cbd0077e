"""Texts as pg_stat_statements of PostgreSQL 15 and 18 shows them, and statements that a server can prepare.

tests/integration/workload/test_counted_texts.py asks servers.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.workload.capture.counted_texts import arguments_of, as_sql, prepared_by
from pgdyno.workload.capture.literals import parameterised
from pgdyno.workload.capture.syntax import shared


@pytest.mark.parametrize(
    ("counted", "sql"),
    [
        ("SELECT a FROM t WHERE b = date $1", "SELECT a FROM t WHERE b = $1::date"),
        ("SELECT a FROM t WHERE b = date$1 and$2=a", "SELECT a FROM t WHERE b = $1::date and $2=a"),
        ("SELECT time(3) $1, timetz $2", "SELECT $1::time(3), $2::timetz"),
        (
            "SELECT timestamp(3) with time zone $1, Timestamp Without Time Zone $2",
            "SELECT $1::timestamp(3) with time zone, $2::timestamp without time zone",
        ),
        (
            "SELECT interval $1, interval $2 day to second(3), interval(3) $3",
            "SELECT $1::interval, $2::interval day to second(3), $3::interval(3)",
        ),
        (
            'SELECT mood $1, app.email $2, "Type" $3, x."T" $4',
            'SELECT $1::mood, $2::app.email, $3::"Type", $4::x."T"',
        ),
        (
            "SELECT double precision $1, numeric(10,2) $2, character varying(5) $3",
            "SELECT $1::double precision, $2::numeric(10,2), $3::character varying(5)",
        ),
        (
            "SELECT extract($1 FROM a), extract( $2 from b.c + $3)",
            "SELECT pg_catalog.extract($1 , a), pg_catalog.extract( $2 , b.c + $3)",
        ),
        ("SELECT a IN ($1 /*, ... */) FROM t", "SELECT a IN ($1 /*, ... */) FROM t"),
        ("UPDATE t SET a = interval $1 WHERE b = $2", "UPDATE t SET a = $1::interval WHERE b = $2"),
        ("SELECT a FROM t WHERE b = 'left over'", "SELECT a FROM t WHERE b = $1"),
    ],
)
def test_typed_literals_and_fields_become_parameters(counted: str, sql: str) -> None:
    assert as_sql(counted) == sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ALL $1 FROM t WHERE a LIKE $2 ESCAPE $3 AND b BETWEEN SYMMETRIC $4 AND $5",
        "SELECT a AT TIME ZONE $1, b SIMILAR TO $2, CASE $3 WHEN $4 THEN $5 ELSE $6 END FROM t",
        "SELECT position($1 in b), overlay(b placing $2 from $3 for $4), trim(both $5 from b) FROM t",
        "SELECT a FROM t ORDER BY b OFFSET $1 ROWS FETCH FIRST $2 ROWS ONLY",
        "SELECT sum(a) OVER (ORDER BY b ROWS $1 PRECEDING) FROM t HAVING $2 OR NOT $3",
        "SELECT concat_ws($1, VARIADIC $2::text[]), f(VARIADIC -$3) FROM t",
        "SELECT a OPERATOR(pg_catalog.+) $1, json_object($2 VALUE $3) FROM t LIMIT $4",
        "SELECT v$1, a$1 FROM v$session",
        "INSERT INTO t VALUES ($1) RETURNING $2",
    ],
)
def test_words_before_a_value_are_no_types(sql: str) -> None:
    assert as_sql(sql) == sql


@pytest.mark.parametrize(
    ("counted", "sql"),
    [
        (
            "SELECT f($1, a) AS d FROM t GROUP BY f('x', a) ORDER BY f('x', a) DESC NULLS LAST LIMIT $2",
            "SELECT f($1, a) AS d FROM t GROUP BY f($1, a) ORDER BY f($1, a) DESC NULLS LAST LIMIT $2",
        ),
        (
            "SELECT b, extract($1 from a) FROM t GROUP BY b, extract(month from a)",
            "SELECT b, pg_catalog.extract($1 , a) FROM t GROUP BY b, pg_catalog.extract($1 , a)",
        ),
        (
            "SELECT x FROM (SELECT b % $1 x FROM t GROUP BY b % 10) q ORDER BY x + $2",
            "SELECT x FROM (SELECT b % $1 x FROM t GROUP BY b % $1) q ORDER BY x + $2",
        ),
        ("SELECT DISTINCT a + $1 FROM t ORDER BY a + 5", "SELECT DISTINCT a + $1 FROM t ORDER BY a + $1"),
        (
            "SELECT a IS DISTINCT FROM $1, b + $2 FROM t GROUP BY b + 2, a",
            "SELECT a IS DISTINCT FROM $1, b + $2 FROM t GROUP BY b + $2, a",
        ),
        # Which of two columns had which constant is unknown, but equal constants are of the same one.
        (
            "SELECT f($1, a), f($2, a) FROM t GROUP BY f('y', a), f('x', a) ORDER BY f('x', a)",
            "SELECT f($1, a), f($2, a) FROM t GROUP BY f($1, a), f($2, a) ORDER BY f($2, a)",
        ),
        ("SELECT *, a + $1 FROM t ORDER BY a + 5", "SELECT *, a + $1 FROM t ORDER BY a + $1"),
        ("SELECT $1, b FROM t GROUP BY 1, 2", "SELECT $1, b FROM t GROUP BY 1, 2"),
        # The server reads ORDER BY first.
        (
            "SELECT count(*) FROM t WHERE f($1, a) > b GROUP BY f('x', a) ORDER BY f($2, a)",
            "SELECT count(*) FROM t WHERE f($1, a) > b GROUP BY f($2, a) ORDER BY f($2, a)",
        ),
        (
            "SELECT DISTINCT ON (f('x', a)) f($1, a), b FROM t ORDER BY f('x', a), b",
            "SELECT DISTINCT ON (f($1, a)) f($1, a), b FROM t ORDER BY f($1, a), b",
        ),
        ("SELECT a + $1 FROM t GROUP BY (a + 5)", "SELECT a + $1 FROM t GROUP BY (a + $1)"),
        (
            "SELECT a + $1 FROM t GROUP BY ROLLUP (b, (a + 5))",
            "SELECT a + $1 FROM t GROUP BY ROLLUP (b, (a + $1))",
        ),
        (
            "SELECT a + $1, sum(count(*)) OVER (ORDER BY a + 5) FROM t GROUP BY a + 5",
            "SELECT a + $1, sum(count(*)) OVER (ORDER BY a + $1) FROM t GROUP BY a + $1",
        ),
        (
            "SELECT a + $1 FROM t GROUP BY a + 5 UNION SELECT a + $2 FROM u GROUP BY a + 5",
            "SELECT a + $1 FROM t GROUP BY a + $1 UNION SELECT a + $2 FROM u GROUP BY a + $2",
        ),
    ],
)
def test_constants_that_the_server_left_in_lists_are_those_of_equal_expressions(
    counted: str, sql: str
) -> None:
    assert as_sql(counted) == sql


@pytest.mark.parametrize(
    ("sql", "expected", "values"),
    [
        (
            "SELECT date_trunc('day', a) FROM t GROUP BY date_trunc('day', a)",
            "SELECT date_trunc($1, a) FROM t GROUP BY date_trunc($1, a)",
            {1: "day"},
        ),
        (
            "SELECT date_trunc('day', a) FROM t GROUP BY a ORDER BY date_trunc('month', a)",
            "SELECT date_trunc($1, a) FROM t GROUP BY a ORDER BY date_trunc($2, a)",
            {1: "day", 2: "month"},
        ),
        (
            "SELECT f('d', a) || 'd', f('m', a) FROM t GROUP BY f('m', a), f('d', a) HAVING f('d', a) > 'd'",
            "SELECT f($1, a) || $2, f($3, a) FROM t GROUP BY f($3, a), f($1, a) HAVING f($1, a) > $4",
            {1: "d", 2: "d", 3: "m", 4: "d"},
        ),
        ("SELECT a + 5 FROM t ORDER BY a + '5'", "SELECT a + $1 FROM t ORDER BY a + $2", {1: "5", 2: "5"}),
    ],
)
def test_in_a_log_only_equal_constants_have_the_same_parameter(
    sql: str, expected: str, values: dict[int, str]
) -> None:
    found = shared(parameterised(sql))
    assert (found.sql, found.values) == (expected, values)


def test_an_expression_of_many_parts_keeps_its_constants() -> None:
    long = parameterised("SELECT 1 FROM t ORDER BY " + "a + " * 5000 + "1")
    assert shared(long) == long


@pytest.mark.parametrize(
    ("counted", "sql"),
    [
        ("PREPARE q AS SELECT a FROM t WHERE b = $1", "SELECT a FROM t WHERE b = $1"),
        ("prepare q(int, numeric(10, 2)) as select $1, $2, $3", "select $1::int, $2::numeric(10, 2), $3"),
        ('/* app */ PREPARE "a b" (unknown, text) AS DELETE FROM t', "DELETE FROM t"),
        # The server forgets the text without constants when its statistics are reset.
        ("PREPARE q (int) AS SELECT $1 + 5, 'x'", "SELECT $1::int + $2, $3"),
    ],
)
def test_execute_is_counted_under_the_text_of_prepare(counted: str, sql: str) -> None:
    assert as_sql(counted) == sql


@pytest.mark.parametrize(
    "sql",
    [
        "PREPARE TRANSACTION $1",
        "SELECT prepare AS a",
        "DEALLOCATE PREPARE q",
        "PREPARE q AS SELECT 1; DELETE FROM t",
    ],
)
def test_other_statements_are_no_prepare(sql: str) -> None:
    assert prepared_by(sql) is None


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("EXECUTE q", {}),
        ("execute q(5, 'x, y', -3);", {1: "5", 2: "x, y", 3: "-3"}),
        ("EXECUTE q ('a'::text, NULL, (1 + 2), f(3, 4), $$x$$)", {1: "a", 2: None, 5: "x"}),
        ("EXECUTE q ('a'::text || 'b', 1::int + 5, date '2026-01-01' + 30)", {}),
        ("EXECUTE q ('a'::text IS NULL, '2026-01-01'::timestamptz AT LOCAL, true::bool and false)", {}),
        (
            "EXECUTE q (date '2026-01-01', '1'::numeric(10, 2), '{1}'::int[], 'a'::app.\"Type\")",
            {1: "2026-01-01", 2: "1", 3: "{1}", 4: "a"},
        ),
        ("SELECT 1", None),
        ("EXECUTE q(1); EXECUTE q(2)", None),
        ("EXECUTE q(1, 2); SELECT f(3, 4)", None),
    ],
)
def test_constants_among_the_arguments_of_execute(sql: str, values: dict[int, str | None] | None) -> None:
    assert arguments_of(sql) == values


@given(st.text(alphabet="ab '\"$1(),.;:-/*[]\n", max_size=60))
def test_the_result_has_no_further_changes(tail: str) -> None:
    once = as_sql(f"SELECT {tail}")
    assert as_sql(once) == once
