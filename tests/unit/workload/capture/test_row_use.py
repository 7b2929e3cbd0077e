"""Columns that statements return."""

from __future__ import annotations

import pytest

from pgdyno.postgres.catalogued_tables import Column
from pgdyno.workload.capture.row_use import RowUse, row_use

ID = Column("public", "orders", "id", "bigint", is_key=True, is_visible=True)
STATE = Column("public", "orders", "state", "text", is_key=False, is_visible=True)
LINE = Column("public", "lines", "order_id", "bigint", is_key=False, is_visible=True)
COLUMNS = (ID, STATE, LINE)
INSERT = "INSERT INTO orders (state) VALUES ($1)"


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT id, state FROM orders WHERE id = $1", (ID, STATE)),
        ("SELECT now(), o.id AS number FROM orders o", (None, ID)),
        ("SELECT * FROM orders", (ID, STATE)),
        ("SELECT state, o.* FROM orders o", (STATE,)),
        ("SELECT l.order_id, * FROM orders o JOIN lines l ON l.order_id = o.id", (LINE,)),
        ("UPDATE orders SET state = $1 RETURNING id", ()),
        ("not SQL", ()),
    ],
)
def test_columns_of_tables_have_their_places(sql: str, columns: tuple[Column | None, ...]) -> None:
    assert row_use(sql, COLUMNS) == RowUse(columns)


@pytest.mark.parametrize(
    ("returning", "columns"),
    [("orders.state, id", (STATE, ID)), ("*", (ID, STATE)), ("id + 1, id", (None, ID))],
)
def test_inserted_rows_are_new(returning: str, columns: tuple[Column | None, ...]) -> None:
    assert row_use(f"{INSERT} RETURNING {returning}", COLUMNS) == RowUse(columns, is_new=True)


def test_a_deleted_row_is_gone() -> None:
    assert row_use("DELETE FROM orders WHERE id = $1", COLUMNS) == RowUse((), is_deleted=True)


def test_an_inserted_row_may_be_one_that_was_there() -> None:
    upsert = f"{INSERT} ON CONFLICT (id) DO UPDATE SET state = $1 RETURNING id"
    assert row_use(upsert, COLUMNS) == RowUse((ID,), is_new=False)
    unless_there = f"{INSERT} ON CONFLICT DO NOTHING RETURNING id"
    assert row_use(unless_there, COLUMNS) == RowUse((ID,), is_new=True)
    assert row_use(INSERT, COLUMNS) == RowUse((), is_new=True)
