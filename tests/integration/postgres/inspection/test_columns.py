"""Columns of real servers: the queries of views, and index scans, of what statements name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg
import pytest
from tests.fix_servers import RealServer

from pgdyno.postgres.catalogued_tables import Column, IndexScan
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.inspection.columns import read_column_values, read_columns
from pgdyno.workload.capture.name_resolution import table_column, why_unknown

pytestmark = pytest.mark.server
_MADE = (
    "CREATE TABLE t (id int PRIMARY KEY, name varchar(20), price numeric)",
    "CREATE TABLE parts (t_id int REFERENCES t, part int)",
    "CREATE VIEW good AS SELECT id, name::text, price * 2 AS total FROM t WHERE price > 0",
    'CREATE VIEW "Very good" ("No", total) AS SELECT id, total FROM good WHERE total > 10',
    "CREATE VIEW joined AS SELECT t.id, p.part, count(*) OVER () FROM t LEFT JOIN parts p ON p.t_id = t.id",
    "CREATE VIEW used AS SELECT id, a.name FROM t a JOIN t b USING (id)",
    "CREATE VIEW hidden AS SELECT id FROM t",
    "CREATE VIEW of_parts AS SELECT part, part + 1 AS next FROM parts",
    "INSERT INTO t SELECT n, 'n', n FROM generate_series(1, 1000) n",
    "CREATE INDEX ON t (name) WHERE id > 3",
    "VACUUM (ANALYZE) t",
    "CREATE DOMAIN code AS char(4) CHECK (VALUE <> 'none')",
    "CREATE DOMAIN known_code AS code NOT NULL",
    "CREATE TABLE kinds (short varchar(16) NOT NULL, long text, of_domain known_code, count int)",
    "ALTER TABLE kinds ADD many varchar, ADD letter char, ADD CHECK (count >= 0 AND long <> short)",
)


@pytest.fixture(scope="module", params=["pg15", "pg18"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    running: RealServer = request.getfixturevalue(request.param)
    running.execute("CREATE DATABASE viewed")
    for statement in _MADE:
        running.execute(statement, "viewed")
    yield running
    running.execute("DROP DATABASE viewed WITH (FORCE)")


def columns_of(server: RealServer, *texts: str) -> dict[str, Column]:
    with closing(connect(server.reading_dsn("viewed"))) as connection:
        return {one.path: one for one in read_columns(connection, "public", texts)}


def test_columns_of_named_views_show_those_of_tables(server: RealServer) -> None:
    found = columns_of(server, 'SELECT * FROM "Very good"', "SELECT * FROM JOINED", "SELECT id FROM used")
    shown = {path: table_column(one, list(found.values())) for path, one in found.items()}
    of_views = {path: one for path, one in shown.items() if found[path].view is not None}
    paths = {path: one and (one.path, one.is_key) for path, one in of_views.items()}
    assert paths == {
        "public.Very good.No": ("public.t.id", True),
        "public.Very good.total": None,
        "public.good.id": ("public.t.id", True),
        "public.good.name": ("public.t.name", False),
        "public.good.total": None,
        "public.joined.id": ("public.t.id", False),
        "public.joined.part": ("public.parts.part", False),
        "public.joined.count": None,
        "public.used.id": ("public.t.id", False),
        "public.used.name": ("public.t.name", False),
        "public.hidden.id": None,
        "public.of_parts.part": None,
        "public.of_parts.next": None,
    }
    assert found["public.hidden.id"].view == ""  # no statement names it


def test_a_view_is_not_read_unless_a_statement_names_it(server: RealServer) -> None:
    with locked(server, "t"):
        assert columns_of(server, "SELECT part FROM parts")["public.good.id"].view == ""


def test_a_locked_table_hides_the_queries_of_its_views_alone(server: RealServer) -> None:
    texts = 'SELECT * FROM "Very good"', "SELECT part, next FROM of_parts"
    with locked(server, "t"):
        found = columns_of(server, *texts)
    assert found["public.good.id"].view == ""
    shown = {path: table_column(found[path], list(found.values())) for path in found}
    assert shown["public.Very good.No"] is None
    assert shown["public.of_parts.part"] == found["public.parts.part"]
    assert [
        why_unknown(found[path], list(found.values()))
        for path in ("public.good.id", "public.Very good.No", "public.of_parts.next")
    ] == [
        "public.good.id is of a view with a locked table",
        "public.Very good.No is of a view with a locked table",
        "public.of_parts.next is computed by its view",
    ]


@contextmanager
def locked(server: RealServer, table: str) -> Iterator[None]:
    """Hold a lock on a table under which its views cannot be shown."""
    with psycopg.connect(server.dsn_for("postgres", "viewed")) as connection:
        connection.execute(f"LOCK TABLE {table}".encode())
        yield


def test_index_scans_are_read_of_tables_named_with_an_offset(server: RealServer) -> None:
    assert all(one.scan is None for one in columns_of(server, "SELECT id FROM t ORDER BY id").values())
    found = columns_of(server, "SELECT id FROM T ORDER BY id LIMIT 1 OFFSET 3")
    scans = {path: one.scan for path, one in found.items() if one.scan is not None}
    [[rows, blocks, visible]] = server.execute(
        "SELECT reltuples, relpages, relallvisible FROM pg_class WHERE relname = 't'", "viewed"
    )
    [[of_index]] = server.execute("SELECT relpages FROM pg_class WHERE relname = 't_pkey'", "viewed")
    assert (rows, visible) == (1000, blocks)
    assert scans == {"public.t.id": IndexScan(1000, blocks, blocks, of_index, correlation=1)}


def test_columns_have_the_base_type_the_length_and_the_constraints_that_they_declare(
    server: RealServer,
) -> None:
    found = columns_of(server)
    shown = {
        one.name: (one.type, one.length, one.is_required, one.is_checked)
        for one in found.values()
        if one.table == "kinds"
    }
    assert shown == {
        "short": ("character varying", 16, True, True),
        "long": ("text", None, False, True),
        "of_domain": ("character", 4, True, True),
        "count": ("integer", None, False, True),
        "many": ("character varying", None, False, False),
        "letter": ("character", 1, False, False),
    }


def test_a_referenced_table_without_blocks_is_empty_unless_it_is_locked(server: RealServer) -> None:
    made = (
        "CREATE TABLE vacant (id int PRIMARY KEY)",
        "CREATE TABLE few (id int PRIMARY KEY)",
        "CREATE TABLE uses (vacant int REFERENCES vacant, few int REFERENCES few)",
        "INSERT INTO few VALUES (1)",
    )
    for one in made:
        server.execute(one, "viewed")
    server.execute("SELECT pg_stat_reset()", "viewed")  # few: neither blocks nor rows in the statistics
    try:
        assert empty_columns(server) == {"public.vacant.id"}
        assert empty_columns(server, 'INSERT INTO public."vacant" (id) VALUES ($1)') == set()
        with locked(server, "vacant"):
            assert empty_columns(server) == set()
    finally:
        server.execute("DROP TABLE vacant, few, uses", "viewed")


def empty_columns(server: RealServer, *texts: str) -> set[str]:
    return {path for path, one in columns_of(server, *texts).items() if one.is_empty}


@pytest.mark.parametrize("is_partitioned", [False, True])
def test_rows_with_a_value_are_counted_or_estimated(server: RealServer, *, is_partitioned: bool) -> None:
    rest = " PARTITION BY RANGE (at)" if is_partitioned else ""
    server.execute(f"CREATE TABLE big (at int, v int){rest}", "viewed")
    try:
        for one in range(4 if is_partitioned else 0):
            bounds = f"FROM ({one * 25_000}) TO ({(one + 1) * 25_000})"
            server.execute(f"CREATE TABLE big_{one} PARTITION OF big FOR VALUES {bounds}", "viewed")
        server.execute(
            "INSERT INTO big SELECT n, nullif(n % 5, 0) FROM generate_series(0, 99999) n", "viewed"
        )
        assert rows_of(server, "v") == pytest.approx(80_000, rel=0.001)  # counted: nothing is estimated yet
        for table in (f"big_{number}" for number in range(4)) if is_partitioned else ("big",):
            server.execute(f"ANALYZE {table}", "viewed")
        assert rows_of(server, "v") == pytest.approx(80_000, rel=0.001)
        assert rows_of(server, "at") == pytest.approx(100_000)
    finally:
        server.execute("DROP TABLE big", "viewed")


def rows_of(server: RealServer, name: str) -> float:
    with closing(connect(server.reading_dsn("viewed"))) as connection:
        column = next(one for one in read_columns(connection, "public") if one.path == f"public.big.{name}")
        return read_column_values(connection, column).rows


def test_columns_that_the_role_may_not_read_are_known(server: RealServer) -> None:
    server.execute("CREATE ROLE narrow LOGIN")
    server.execute("GRANT SELECT (id) ON t TO narrow", "viewed")
    try:
        with closing(connect(server.dsn_for("narrow", "viewed"))) as connection:
            found = {one.path: one.is_readable for one in read_columns(connection, "public")}
    finally:
        server.execute("DROP OWNED BY narrow", "viewed")
        server.execute("DROP ROLE narrow")
    assert {path for path, is_readable in found.items() if is_readable} == {"public.t.id"}
