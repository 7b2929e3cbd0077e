"""Draws of columns that a workload's file names: of tables, and of views."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import psycopg
import pytest
from tests.fix_servers import RealServer

from pgdyno.base.errors import ServerError
from pgdyno.load.captured import ColumnDraws
from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedStatement,
    CapturedTransaction,
    CapturedWorkload,
    ColumnValue,
    NewKey,
    RangeEnd,
)
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.column_draws import read_draws

pytestmark = pytest.mark.server
_MADE = (
    "CREATE TABLE t (id int PRIMARY KEY, v int)",
    "INSERT INTO t SELECT n, n % 2 FROM generate_series(1, 50) n",
    "ANALYZE t",
    "CREATE VIEW good AS SELECT id, v, v + id AS total FROM t",
    "CREATE TABLE nothing (id int)",
    "CREATE DOMAIN code AS varchar(7)",
    "CREATE TABLE lines (t_id int NOT NULL REFERENCES t, code code NOT NULL, at timestamptz NOT NULL)",
    "ALTER TABLE lines ADD a int, ADD b int, ADD c int, ADD d int, ADD e int, ADD f int",
    "ALTER TABLE lines ADD place point NOT NULL",
    "CREATE TABLE secured (id int PRIMARY KEY, owner text)",
    "ALTER TABLE secured ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY own ON secured USING (owner = current_setting('app.owner'))",
    "INSERT INTO secured VALUES (1, 'a')",
)


@pytest.fixture
def server(pg18: RealServer) -> Iterator[RealServer]:
    pg18.execute("CREATE DATABASE drawn")
    for statement in _MADE:
        pg18.execute(statement, "drawn")
    yield pg18
    pg18.execute("DROP DATABASE drawn WITH (FORCE)")


def draws(
    server: RealServer, role: str, *columns: ColumnValue | NewKey | RangeEnd
) -> tuple[ColumnDraws, tuple[str, ...]]:
    """Read draws for a workload whose statement does not name the columns' tables."""
    statement = CapturedStatement("s", "SELECT 1", Seen(1, 1.0, 1, 1, 0))
    transaction = CapturedTransaction(1.0, (CapturedCall("s", 1.0, columns),))
    workload = CapturedWorkload("w", "18", 1, "drawn", 1.0, 1, (statement,), (transaction,))
    with closing(connect(server.dsn_for(role, "drawn"))) as connection:
        return read_draws(connection, workload)


def test_a_view_s_column_is_drawn_from_the_table_s(server: RealServer) -> None:
    found, notes = draws(
        server,
        "postgres",
        ColumnValue("public.good.id"),
        NewKey("public.good.id"),
        ColumnValue("public.good.total"),
        ColumnValue("public.nothing.id"),
    )
    assert found.values["public.good.id"] == {"draw": "integer", "low": 1, "high": 50}
    assert found.highest["public.good.id"] == 50
    assert found.values["public.good.total"] == found.values["public.nothing.id"] == {"draw": "null"}
    assert notes == (
        "public.good.total is computed by its view: NULL is used",
        "public.nothing.id has no values: NULL is used",
    )


def test_columns_of_an_empty_table_are_drawn_by_their_keys_or_types_if_they_take_no_null(
    server: RealServer,
) -> None:
    names = ("t_id", "code", "at", "a", "b", "c", "d", "e", "f", "place")
    found, notes = draws(server, "postgres", *(ColumnValue(f"public.lines.{name}") for name in names))
    shown = {path.rpartition(".")[2]: draw for path, draw in found.values.items()}
    assert shown == {
        "t_id": {"draw": "integer", "low": 1, "high": 50},
        "code": {"draw": "text", "least": 5, "most": 7},
        "at": {"draw": "constant", "value": "now"},
        **{name: {"draw": "null"} for name in (*"abcdef", "place")},
    }
    assert notes == (
        "2 columns have no values: values are drawn by type (public.lines.at, public.lines.code)",
        (
            "7 columns have no values: NULL is used (public.lines.a, public.lines.b, public.lines.c, "
            "public.lines.d, public.lines.e, …)"
        ),
    )


def test_a_column_that_the_role_may_not_read_is_said(server: RealServer) -> None:
    server.execute("CREATE ROLE narrow LOGIN")
    server.execute("GRANT SELECT ON good TO narrow", "drawn")
    try:
        found, notes = draws(server, "narrow", ColumnValue("public.good.v"))
    finally:
        server.execute("DROP OWNED BY narrow", "drawn")
        server.execute("DROP ROLE narrow")
    assert (found.values, notes) == (
        {"public.good.v": {"draw": "null"}},
        ("the role may not read public.t.v: NULL is used",),
    )


def test_columns_that_row_level_security_hides_are_named(server: RealServer) -> None:
    server.execute("CREATE ROLE narrow LOGIN IN ROLE pg_read_all_data")
    try:
        found, notes = draws(
            server, "narrow", ColumnValue("public.good.v"), ColumnValue("public.secured.owner")
        )
    finally:
        server.execute("DROP ROLE narrow")
    assert found.values["public.good.v"] != {"draw": "null"}
    assert found.values["public.secured.owner"] == {"draw": "null"}
    assert notes == (
        (
            "public.secured.owner cannot be read (a query failed: unrecognized configuration parameter "
            '"app.owner"): NULL is used'
        ),
    )


def test_ranges_of_a_partitioned_table_that_is_not_analysed_have_the_wanted_rows(server: RealServer) -> None:
    server.execute("CREATE TABLE big (at int, n int) PARTITION BY RANGE (at)", "drawn")
    for one in range(4):
        bounds = f"FROM ({one * 50_000}) TO ({(one + 1) * 50_000})"
        server.execute(f"CREATE TABLE big_{one} PARTITION OF big FOR VALUES {bounds}", "drawn")
    server.execute("INSERT INTO big SELECT n / 2, n FROM generate_series(0, 399999) n", "drawn")
    for one in range(4):
        server.execute(f"ANALYZE big_{one}", "drawn")
    end = RangeEnd(1, "public.big.at", rows=200)
    found, _ = draws(server, "postgres", ColumnValue("public.big.at"), end)
    # Two rows of each of a hundred. A sample of a hundred blocks estimates the share of one partition.
    assert np.mean(found.widths[end]) == pytest.approx(99, rel=0.4)


def test_ranges_of_a_column_with_many_nulls_have_the_wanted_rows(server: RealServer) -> None:
    server.execute("CREATE TABLE sparse (at int)", "drawn")
    made = "INSERT INTO sparse SELECT CASE WHEN n % 5 = 0 THEN n END FROM generate_series(0, 399999) n"
    server.execute(made, "drawn")
    server.execute("ANALYZE sparse", "drawn")
    end = RangeEnd(1, "public.sparse.at", rows=100)
    found, _ = draws(server, "postgres", ColumnValue("public.sparse.at"), end)
    assert np.mean(found.widths[end]) == pytest.approx(495, rel=0.05)  # a hundred rows, each 5 further


@pytest.mark.long
def test_a_lock_is_an_error(server: RealServer) -> None:
    with psycopg.connect(server.dsn_for("postgres", "drawn")) as other:
        other.execute("LOCK TABLE nothing")
        with pytest.raises(ServerError, match="canceling statement due to"):
            draws(server, "postgres", ColumnValue("public.nothing.id"))
