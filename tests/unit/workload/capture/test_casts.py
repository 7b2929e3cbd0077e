"""Casts of numbers that became parameters."""

from __future__ import annotations

import pytest

from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.casts import assumed_types, casts_of

COLUMNS = (
    Column("public", "notes", "id", "text", is_key=True, is_visible=True),
    Column("public", "notes", "code", "text", is_key=False, is_visible=True),
    Column("public", "notes", "day", "date", is_key=False, is_visible=True),
    Column("public", "notes", "made", "timestamp with time zone", is_key=False, is_visible=True),
    Column("public", "notes", "size", "bigint", is_key=False, is_visible=True),
)
INTEGER = {1: "integer"}


@pytest.mark.parametrize(
    ("sql", "types", "expected"),
    [
        ("SELECT substring(code from $1) FROM notes", ("text",), INTEGER),
        ("SELECT code FROM notes LIMIT $1", ("bigint",), {}),
        ("SELECT $1 + $2", "operator is not unique: unknown + unknown", INTEGER),
        ("UPDATE notes SET code = $1", ("text",), {}),
        ("INSERT INTO notes (id) VALUES ($1)", ("text",), {}),
    ],
)
def test_numbers_are_cast_where_they_are_taken_for_texts(
    sql: str, types: tuple[str, ...] | str, expected: dict[int, str]
) -> None:
    assert casts_of(sql, types, INTEGER, COLUMNS, Seen(1, 1.0, 1, 1, 0)) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT $1 + $2, size * $3, day - $4, made + $5 FROM notes", (1, 2, 3, 4)),
        ("SELECT now() - $1, current_date - $2", (2,)),
        ("SELECT sum(CASE WHEN code = $1 THEN $2 ELSE $3 END) FROM notes", (2, 3)),
        ("WITH RECURSIVE r(n) AS (SELECT $1 UNION ALL SELECT n + $2 FROM r) SELECT n FROM r", (1, 2)),
        ("SELECT * FROM generate_series($1, $2)", (1, 2)),
        ("SELECT code FROM notes WHERE code = $1", ()),
    ],
)  # fmt: skip
def test_constants_without_a_type_are_assumed_to_be_integers(sql: str, expected: tuple[int, ...]) -> None:
    error = "operator is not unique: unknown + unknown"
    assert assumed_types(sql, error, COLUMNS) == dict.fromkeys(expected, "integer")
    assert assumed_types(sql, ("text",) * 5, COLUMNS) == {}


def test_elements_of_an_array_have_the_type_of_the_column() -> None:
    sql = "SELECT 1 FROM notes WHERE size = ANY (ARRAY[$1, $2]) AND ARRAY[$3] = $4"
    error = "operator does not exist: bigint = text"
    assert assumed_types(sql, error, COLUMNS) == {1: "bigint", 2: "bigint"}


@pytest.mark.parametrize("types", [("text", "text"), "function is not unique"])
def test_places_in_a_text_are_integers(types: tuple[str, ...] | str) -> None:
    assert assumed_types("SELECT substring(code FROM $1 FOR $2) FROM notes", types, COLUMNS) == {
        1: "integer",
        2: "integer",
    }
