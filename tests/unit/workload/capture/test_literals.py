"""Constants taken for parameters. tests/integration/test_logged_constants.py asks servers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.workload.capture.literals import in_place_of_parameters, parameterised, statements_of


@pytest.mark.parametrize(
    ("sql", "expected", "values"),
    [
        ("SELECT 1", "SELECT $1", ["1"]),
        ("SELECT * FROM t WHERE a = 'it''s'", "SELECT * FROM t WHERE a = $1", ["it's"]),
        ("SELECT a FROM t WHERE b = $1 AND c = 5", "SELECT a FROM t WHERE b = $1 AND c = $2", ["5"]),
        ("SELECT $3, 'x'", "SELECT $3, $4", ["x"]),
        (
            "SELECT a FROM t WHERE id IN (1, 2,3) LIMIT 10 OFFSET 5",
            "SELECT a FROM t WHERE id IN ($1, $2,$3) LIMIT $4 OFFSET $5",
            ["1", "2", "3", "10", "5"],
        ),
        ("SELECT a FROM t ORDER BY 2, b, 1 LIMIT 1", "SELECT a FROM t ORDER BY 2, b, 1 LIMIT $1", ["1"]),
        ("SELECT b, count(*) FROM t GROUP BY 1", "SELECT b, count(*) FROM t GROUP BY 1", []),
        ("SELECT DISTINCT ON (1) a FROM t", "SELECT DISTINCT ON (1) a FROM t", []),
        ("SELECT a::numeric(10, 2), b::char(5)", "SELECT a::numeric(10, 2), b::char(5)", []),
        ("SELECT CAST(a AS numeric(10,2))", "SELECT CAST(a AS numeric(10,2))", []),
        ("SELECT -5, a - 5, a -5 FROM t", "SELECT $1, a - $2, a -$3 FROM t", ["-5", "5", "5"]),
        ("UPDATE t SET a = a + -35 WHERE b = 1.5", "UPDATE t SET a = a + $1 WHERE b = $2", ["-35", "1.5"]),
        (
            "INSERT INTO t VALUES (NULL, true, FALSE)",
            "INSERT INTO t VALUES ($1, $2, $3)",
            [None, "true", "false"],
        ),
        ("SELECT a IS NOT NULL AND b IS TRUE FROM t", "SELECT a IS NOT NULL AND b IS TRUE FROM t", []),
        (r"SELECT E'a\n\'b\\'", "SELECT $1", ["a\n'b\\"]),
        (r"SELECT E'\uD83D\uDE00'", "SELECT $1", ["\N{GRINNING FACE}"]),
        (r"SELECT E'\uDE00 a'", "SELECT $1", ["\N{REPLACEMENT CHARACTER} a"]),
        ("SELECT $$it's$$, $a$ $$ $a$", "SELECT $1, $2", ["it's", " $$ "]),
        ("SELECT 'a'\n  'b'", "SELECT $1", ["ab"]),
        ("SELECT 'a''\n''b'", "SELECT $1", ["a'\n'b"]),
        ("SELECT B'101', X'1F'", "SELECT $1, $2", ["b101", "x1F"]),
        ("SELECT \"it's 5\" FROM t5", "SELECT \"it's 5\" FROM t5", []),
        ("SELECT a -- 'x'\nFROM t /* 5 */", "SELECT a  \nFROM t", []),
        ("SELECT'a'AS b,5c", "SELECT $1 AS b,$2 c", ["a", "5"]),
        ("SELECT 'a'::text", "SELECT $1::text", ["a"]),
    ],
)  # fmt: skip
def test_constants_become_parameters(sql: str, expected: str, values: list[str | None]) -> None:
    found = parameterised(sql)
    assert found.sql == expected
    assert list(found.values.values()) == values


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT DATE '2026-01-01'", "SELECT $1::date"),
        ("SELECT now() - INTERVAL '1' DAY", "SELECT now() - $1::interval DAY"),
        ("SELECT TIMESTAMP WITH TIME ZONE '2026-01-01'", "SELECT $1::timestamp with time zone"),
        ("SELECT a AT TIME ZONE 'UTC' FROM t", "SELECT a AT TIME ZONE $1 FROM t"),
        ("SELECT app.\"Mood\" 'ok', interval(3) '5'", 'SELECT $1::app."Mood", $2::interval(3)'),
        ("SELECT extract('year' FROM a), extract(month FROM a)",
         "SELECT pg_catalog.extract($1 , a), extract(month FROM a)"),
        ("ALTER ROLE a PASSWORD 'x'", "ALTER ROLE a PASSWORD $1"),
    ],
)  # fmt: skip
def test_a_type_before_a_text_is_a_cast_as_a_parameter_takes_no_other(sql: str, expected: str) -> None:
    assert parameterised(sql).sql == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT nextval('app.\"Ids\"'::regclass), setval('ids', 5)",
         "SELECT nextval('app.\"Ids\"'::regclass), setval('ids', $1)"),
        ("SELECT set_config('app.tenant', '42', true)", "SELECT set_config('app.tenant', $1, $2)"),
        ("SELECT set_config('4711', current_setting('a b'), true)",
         "SELECT set_config($1, current_setting($2), $3)"),
        ("SELECT f('ids')", "SELECT f($1)"),
    ],
)  # fmt: skip
def test_names_of_sequences_and_settings_stay(sql: str, expected: str) -> None:
    assert parameterised(sql).sql == expected


def test_numbers_have_the_types_that_postgresql_gives_them() -> None:
    found = parameterised("SELECT 1, 2147483648, 9223372036854775808, 1.0, 'text'")
    assert found.types == {1: "integer", 2: "bigint", 3: "numeric", 4: "numeric"}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT $1, $2 FROM t", "SELECT <1>, $2 FROM t"),
        ("SELECT $1::text||$1", "SELECT <1>::text||<1>"),
        ("SELECT '$1', E'\\'$1', $1", "SELECT '$1', E'\\'$1', <1>"),
        ("SELECT $$ $1 $$, $a$ $1 $a$, $1", "SELECT $$ $1 $$, $a$ $1 $a$, <1>"),
        ('SELECT "$1", a$1, $1', 'SELECT "$1", a$1, <1>'),
        ("SELECT $1 -- $1\n, $1", "SELECT <1> -- $1\n, <1>"),
        ("SELECT /* $1 */ $1", "SELECT /* $1 */ <1>"),
        ("SELECT /* /* /* a */ $1 * / */ $1 */ $1", "SELECT /* /* /* a */ $1 * / */ $1 */ <1>"),
        ("SELECT $1 /* $1", "SELECT <1> /* $1"),
        ("SELECT $10, $1", "SELECT $10, <1>"),
    ],
)
def test_parameters_are_replaced_where_they_are_some(sql: str, expected: str) -> None:
    assert in_place_of_parameters(sql, {1: "<1>"}) == expected


def test_a_text_is_divided_at_its_semicolons() -> None:
    text = "BEGIN; SELECT ';', \";\" /* ; */; DO $$ BEGIN; END $$;; COMMIT;"
    assert statements_of(text) == ["BEGIN", "SELECT ';', \";\" /* ; */", "DO $$ BEGIN; END $$", "COMMIT"]


@given(st.text(max_size=200))
def test_no_text_is_refused_and_what_has_no_constants_stays(text: str) -> None:
    once = parameterised(text)
    assert parameterised(once.sql).sql == once.sql
    assert statements_of(text) is not None


@given(st.text(alphabet=st.characters(exclude_characters="\x00"), max_size=50))
def test_the_value_of_a_quoted_text_is_the_text(value: str) -> None:
    quoted = value.replace("'", "''")
    assert parameterised(f"SELECT '{quoted}'").values == {1: value}
