"""Casts of numbers that became parameters."""

from __future__ import annotations

import pytest

from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.casts import casts_of

COLUMNS = (
    Column("public", "notes", "id", "text", is_key=True, is_visible=True),
    Column("public", "notes", "code", "text", is_key=False, is_visible=True),
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
