"""Texts that differ only in their constants, and the values of these."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.workload.capture.logs.texts import Texts

Found = list[tuple[str, dict[int, str | None]]]


def read(texts: Texts, text: str) -> Found:
    found = texts.executions(text, is_simple=True)
    return [(texts.sql[one.statement], one.values) for one in found]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (
            "SELECT a FROM t WHERE b = 5 AND c = 'x'",
            "SELECT a FROM t WHERE b = 70000000000 AND c = 'it''s'",
            [("SELECT a FROM t WHERE b = $1 AND c = $2", {1: "70000000000", 2: "it's"})],
        ),
        (
            "UPDATE t SET a = a + -5, b = NULL WHERE c = $1 AND d = 1.50",
            "UPDATE t SET a = a + -66, b = NULL WHERE c = $1 AND d = 2.25",
            [("UPDATE t SET a = a + $2, b = $3 WHERE c = $1 AND d = $4", {2: "-66", 3: None, 4: "2.25"})],
        ),
        (
            'SELECT "a 1" /* 5, \'x\' */ FROM t1 WHERE b = 2 -- 6\n',
            'SELECT "a 1" /* 7 */ FROM t1 WHERE b = 3 -- it\'s\n',
            [('SELECT "a 1"   FROM t1 WHERE b = $1', {1: "3"})],
        ),
        (
            "BEGIN; SELECT 1; SELECT a FROM t WHERE b = 'x'; COMMIT",
            "BEGIN; SELECT 2; SELECT a FROM t WHERE b = ';'; COMMIT",
            [
                ("BEGIN", {}),
                ("SELECT $1", {1: "2"}),
                ("SELECT a FROM t WHERE b = $1", {1: ";"}),
                ("COMMIT", {}),
            ],
        ),
        (
            "SELECT a::numeric(10, 2) FROM t WHERE b = 1 ORDER BY 1",
            "SELECT a::numeric(12, 3) FROM t WHERE b = 2 ORDER BY 2",
            [("SELECT a::numeric(12, 3) FROM t WHERE b = $1 ORDER BY 2", {1: "2"})],
        ),
        (
            "SELECT a FROM t WHERE b = 'x'",
            "SELECT a FROM t WHERE b = E'\\'y'",
            [("SELECT a FROM t WHERE b = $1", {1: "'y"})],
        ),
        (
            "SELECT 1 WHERE b = $$a 5 b$$",
            "SELECT 1 WHERE b = $$a 6 b$$",
            [("SELECT $1 WHERE b = $2", {1: "1", 2: "a 6 b"})],
        ),
        ("SET work_mem = 5", "SET work_mem = 6", [("SET …", {})]),
        (
            "SELECT a FROM t WHERE b = '1'",
            "SELECT a FROM t WHERE b = 2",
            [("SELECT a FROM t WHERE b = $1", {1: "2"})],
        ),
        ("SELECT 1 FROM pg_stat_activity", "SELECT 2 FROM pg_stat_activity", []),
    ],
)  # fmt: skip
def test_constants_have_the_values_of_their_own_text(first: str, second: str, expected: Found) -> None:
    texts = Texts()
    read(texts, first)
    assert read(texts, second) == expected
    assert read(texts, second) == expected


# Two forms each of parts of statements, with constants of the same kind where they have any.
_PARTS = (
    ("SELECT", "SELECT"), ("a", "a"), ("1", "22"), ("-3", "-44"), ("1.5", "0.25"), ("'x'", "'y''z'"),
    ("'--'", "'/* \"'"), ('"n 1"', '"n 1"'), ("-- 5\n", "-- 'q\n"), ("/* '6' */", "/* 7 -- */"), ("$1", "$1"),
    ("$$7$$", "$$'8$$"), ("E'\\'9'", "E'9'"), ("B'1'", "B'0'"), ("ORDER BY", "ORDER BY"), (",", ","),
    ("numeric(10, 2)", "numeric(11, 3)"), ("NULL", "NULL"), (";", ";"), (".5", ".6"), ("1e3", "2e3"),
    ("date '2026-01-01'", "date '2025-05-05'"), ("x1", "x1"), ("\n", "\n"), ("'", "'"), ("/*", "/*"),
)  # fmt: skip


@given(st.lists(st.sampled_from(_PARTS), max_size=12), st.sampled_from(["", " "]))
def test_a_text_is_read_as_if_it_were_the_first(parts: list[tuple[str, str]], space: str) -> None:
    one, other = (space.join(["SELECT ", *(part[form] for part in parts)]) for form in (0, 1))
    texts = Texts()
    read(texts, one)
    assert read(texts, other) == read(Texts(), other)
    assert read(texts, one) == read(Texts(), one)


def test_statements_that_are_left_out_are_counted_each_time() -> None:
    texts = Texts()
    for number in range(3):
        assert read(texts, f"SELECT {', '.join([str(number)] * 2001)}") == []
    assert texts.long == 3
