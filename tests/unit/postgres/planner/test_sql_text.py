"""What is found in the text of a statement, and what is not taken for a part of it."""

from __future__ import annotations

import pytest

from pgdyno.postgres.planner.sql_text import (
    calls_in,
    first_word,
    has_parameter,
    has_several_statements,
    operators_in,
    statements_in,
    without_constants,
)


@pytest.mark.parametrize(
    "hidden",
    [
        "'f(1)'",
        "'it''s f(1)'",
        r"E'\' f(1)'",
        r"e'\\' || 'f(1)'",
        "$$ f(1) $$",
        "$x$ f(1) $$ $x$",
        "-- f(1)\n",
        "/* f(1) */",
        "/* /* */ f(1) */",
        "/* f(1)",
    ],
)
def test_comments_and_constants_are_left_out(hidden: str) -> None:
    assert calls_in(f"SELECT g(1), {hidden}") == {(None, "g")}


def test_what_follows_a_constant_is_seen_again() -> None:
    assert calls_in("SELECT 'a', f(1), $$b$$, g(2), /* c */ h(3) -- d") == {
        (None, "f"),
        (None, "g"),
        (None, "h"),
    }


def test_a_backslash_is_an_ordinary_character_in_an_ordinary_constant() -> None:
    assert calls_in(r"SELECT '\', f(1)") == {(None, "f")}


def test_names_are_folded_as_the_catalogs_have_them() -> None:
    found = calls_in('SELECT Low(1), "Up" (2), s.F(3), "S"."say ""x"""(4), größe(5)')
    assert found == {
        (None, "low"),
        (None, "Up"),
        ("s", "f"),
        ("S", 'say "x"'),
        (None, "größe"),
    }


def test_what_looks_like_a_call_within_an_identifier_is_none() -> None:
    assert calls_in('SELECT f(1) AS "unsafe (x)", "G"(2)') == {(None, "f"), (None, "G")}


def test_an_identifier_in_quotes_is_no_constant() -> None:
    assert without_constants('SELECT "--" FROM "a;b"') == 'SELECT "--" FROM "a;b"'


@pytest.mark.parametrize(
    ("sql", "is_so"),
    [
        ("SELECT $1", True),
        ("SELECT a+$12", True),
        ("SELECT '$1'", False),
        ("SELECT a$1 FROM t", False),
        ("SELECT $$ $1 $$", False),
        ("SELECT 1 -- $1", False),
        ('SELECT 1 AS "$1"', False),
    ],
)
def test_parameters(sql: str, is_so: bool) -> None:  # noqa: FBT001 — of the case
    assert has_parameter(sql) is is_so


@pytest.mark.parametrize(
    ("sql", "is_so"),
    [
        ("SELECT 1", False),
        ("SELECT 1;", False),
        ("SELECT 1 ; ; -- end", False),
        ("SELECT ';' ; /* ; SELECT 2 */", False),
        ('SELECT 1 AS "a;""b"', False),
        ('SELECT 1 AS "a"; SELECT 2', True),
        ("SELECT 1; SELECT 2", True),
        ("SELECT $$;$$; DROP TABLE t", True),
    ],
)
def test_several_statements(sql: str, is_so: bool) -> None:  # noqa: FBT001 — of the case
    assert has_several_statements(sql) is is_so


@pytest.mark.parametrize(
    ("sql", "word"),
    [("", ""), ("  -- SELECT", ""), ("/* x */ ( select 1)", "select"), ("Declare c CURSOR", "declare")],
)
def test_the_first_word(sql: str, word: str) -> None:
    assert first_word(sql) == word


def test_operators() -> None:
    assert operators_in("SELECT a === b, '<>' , c->>'x'") == {"===", "->>"}
    assert operators_in('SELECT 1 + 2 AS "a <> b"') == {"+"}


def test_a_script_is_split_into_statements_without_comments() -> None:
    script = """-- a; b
CREATE INDEX  a /* ; /* nested; */ */ ON "t;  1"
  (x) WHERE y = 'a;  ''b';;
ANALYZE $x$ ;  $x$; DROP INDEX E'a\\';'"""
    assert statements_in(script) == (
        "CREATE INDEX a ON \"t;  1\" (x) WHERE y = 'a;  ''b'",
        "ANALYZE $x$ ;  $x$",
        "DROP INDEX E'a\\';'",
    )
    assert statements_in(" ;\n-- nothing\n;") == ()


def test_constants_in_several_lines_stay_apart() -> None:
    # PostgreSQL joins 'a' and 'b' if a line ends between them; in one line they are a syntax error.
    assert statements_in("SELECT 'a' -- of two\n\t 'b'  ;\nSELECT 'a'  'b'") == (
        "SELECT 'a'\n'b'",
        "SELECT 'a' 'b'",
    )
    assert statements_in("SELECT\n'a'\r\n'b'\n,\n'c'\n") == ("SELECT 'a'\n'b' , 'c'",)


def test_white_space_is_that_of_postgresql() -> None:
    assert statements_in("\v\fVACUUM\r\n\ta\N{NO-BREAK SPACE}b \N{NO-BREAK SPACE};\r") == (
        "VACUUM a\N{NO-BREAK SPACE}b \N{NO-BREAK SPACE}",
    )
    assert statements_in("VACUUM a; -- first\rVACUUM b") == ("VACUUM a", "VACUUM b")  # \r ends a comment too
