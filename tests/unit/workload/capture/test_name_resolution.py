"""Columns of views. The queries of views are as pg_get_viewdef of PostgreSQL 18 shows them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.postgres.catalogued_tables import Column
from pgdyno.workload.capture.name_resolution import column_of, table_column
from pgdyno.workload.capture.syntax import tree

ID = Column("public", "t", "id", "integer", is_key=True, is_visible=True)
NAME = Column("public", "t", "name", "character varying", is_key=False, is_visible=True)
PRICE = Column("public", "t", "price", "numeric", is_key=False, is_visible=True)
PART = Column("public", "parts", "t_id", "integer", is_key=False, is_visible=True, references="public.t.id")
TABLES = (ID, NAME, PRICE, PART)
GOOD = (
    " SELECT id,\n    (name)::text AS name,\n    (price * (2)::numeric) AS total\n   FROM public.t\n"
    "  WHERE (price > (0)::numeric);"
)
BETTER = ' SELECT good.id AS "No",\n    good.total\n   FROM public.good;'
JOINED = (
    " SELECT t.id,\n    p.t_id AS part,\n    count(*) AS parts\n   FROM (public.t\n"
    "     LEFT JOIN public.parts p ON ((p.t_id = t.id)))\n  GROUP BY t.id, p.t_id;"
)
TWICE = (
    " SELECT a.id\n   FROM ((public.t a\n     JOIN public.parts p ON ((p.t_id = a.id)))\n"
    "     JOIN public.t b ON ((b.id = p.t_id)));"
)
BOTH = " SELECT t.id\n   FROM public.t\nUNION ALL\n SELECT parts.t_id AS id\n   FROM public.parts;"
NAMED = " WITH x AS (\n         SELECT t.id\n           FROM public.t\n        )\n SELECT id\n   FROM x;"


def shown(name: str, type_: str, query: str, table: str = "v") -> Column:
    """A column of a view."""
    return Column("public", table, name, type_, is_key=False, is_visible=True, view=query)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (shown("id", "integer", GOOD), ID),
        (shown("name", "text", GOOD), NAME),
        (shown("id", "integer", JOINED), replace(ID, is_key=False)),  # once for each part
        (shown("part", "integer", JOINED), PART),
        (shown("id", "integer", TWICE), replace(ID, is_key=False)),
        (shown("id", "bigint", " SELECT (id)::bigint AS id\n   FROM public.t;"), ID),
        (ID, ID),
    ],
)
def test_a_column_of_a_view_is_the_tables_that_it_shows(column: Column, expected: Column) -> None:
    assert table_column(column, TABLES) == expected


@pytest.mark.parametrize(
    "column",
    [
        shown("total", "numeric", GOOD),
        shown("parts", "bigint", JOINED),
        shown("id", "integer", BOTH),
        shown("id", "integer", NAMED),
        shown("price", "integer", " SELECT (price)::integer AS price\n   FROM public.t;"),  # rounds
        shown("id", "integer", ""),  # not read
        shown("n", "integer", " SELECT n\n   FROM generate_series(1, 3) n(n);"),
        shown("id", "integer", " SELECT id\n   FROM public.v;"),  # of a server that is not PostgreSQL
    ],
)
def test_what_a_view_computes_is_no_column_of_a_table(column: Column) -> None:
    assert table_column(column, (*TABLES, column)) is None


def test_a_view_of_a_view_shows_the_table_too() -> None:
    columns = (
        *TABLES,
        shown("id", "integer", GOOD, "good"),
        shown("total", "numeric", GOOD, "good"),
        shown("No", "integer", BETTER, "better"),
        shown("total", "numeric", BETTER, "better"),
    )
    parsed = tree('SELECT b.total FROM better b WHERE b."No" = $1')
    assert parsed is not None
    of_total, of_number = parsed.expressions[0], parsed.args["where"].this.this
    assert column_of(of_number, columns) == ID
    assert column_of(of_total, columns) is None


def test_tables_joined_in_parentheses_are_those_of_the_query() -> None:
    parsed = tree(
        "SELECT 1 FROM ((t JOIN parts p ON p.t_id = t.id) JOIN t b ON b.id = p.t_id) WHERE t_id = $1"
    )
    assert parsed is not None
    assert column_of(parsed.args["where"].this.this, TABLES) == PART
