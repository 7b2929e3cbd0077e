"""Functions, sequences and policies of real servers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from tests.fix_servers import RealServer

from pgdyno.postgres.catalogued_tables import Policy
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.inspection.named_objects import (
    read_policies,
    read_sequences,
    read_writing_functions,
)

pytestmark = pytest.mark.server
_MADE = (
    "CREATE TABLE t (id serial, other int GENERATED ALWAYS AS IDENTITY, owner text)",
    'CREATE SCHEMA "App"',
    'CREATE SEQUENCE "App"."My ids"',
    "CREATE TABLE stage (t text)",
    "CREATE FUNCTION log(t text) RETURNS void LANGUAGE sql AS 'INSERT INTO stage VALUES (t)'",
    'CREATE FUNCTION "App"."Mine"() RETURNS int LANGUAGE sql AS \'SELECT 1\'',
    "CREATE FUNCTION indirect(t text) RETURNS void LANGUAGE sql STABLE AS 'SELECT log(t)'",
    "CREATE EXTENSION tablefunc",
    "CREATE EXTENSION pg_trgm",
    "CREATE FUNCTION constant() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1'",
    "CREATE PROCEDURE done() LANGUAGE sql AS 'SELECT 1'",
    "CREATE FUNCTION random(text) RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY own ON t USING (owner = current_setting('app.owner')) WITH CHECK (id > 0)",
    "CREATE POLICY off ON stage USING (t = 'a')",
    "CREATE TABLE member (team int)",
    "ALTER TABLE member ENABLE ROW LEVEL SECURITY",
    "CREATE POLICY mine ON member USING (team > 0)",
)


@pytest.fixture(scope="module", params=["pg15", "pg18"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    running: RealServer = request.getfixturevalue(request.param)
    running.execute("CREATE DATABASE named")
    for statement in _MADE:
        running.execute(statement, "named")
    yield running
    running.execute("DROP DATABASE named WITH (FORCE)")


def test_functions_write_unless_they_are_declared_to_read(server: RealServer) -> None:
    server.execute("SELECT indirect('a')", "named")
    assert server.execute("SELECT t FROM stage", "named") == [("a",)]  # the server lets a stable one write
    with closing(connect(server.reading_dsn("named"))) as connection:
        found = read_writing_functions(connection)
    writing = {
        "log",
        "indirect",
        "Mine",
        "normal_rand",  # of an extension, volatile
        "nextval",
        "setval",
        "set_config",
        "pg_advisory_xact_lock",
        "lo_create",
        "pg_notify",
    }
    reading = {"similarity_op", "crosstab", "word_similarity_op", "now"}
    reading |= {"constant", "done", "clock_timestamp", "pg_sleep", "gen_random_uuid", "count", "lower"}
    assert (writing - found, reading & found) == (set(), set())
    assert "random" in found  # a user's function of that name may write
    assert not {"timeofday", "currval", "pg_relation_size"} & found


def test_sequences_have_the_columns_that_own_them(server: RealServer) -> None:
    with closing(connect(server.reading_dsn("named"))) as connection:
        assert read_sequences(connection) == {
            '"App"."My ids"': None,
            "public.t_id_seq": "public.t.id",
            "public.t_other_seq": "public.t.other",
        }


def test_policies_are_those_of_tables_with_row_level_security(server: RealServer) -> None:
    with closing(connect(server.reading_dsn("named"))) as connection:
        assert read_policies(connection) == (
            Policy("public", "member", "(team > 0)"),
            Policy("public", "t", "(owner = current_setting('app.owner'::text))"),
            Policy("public", "t", "(id > 0)"),
        )


def test_policies_of_a_locked_table_are_known_without_their_conditions(server: RealServer) -> None:
    with psycopg.connect(server.dsn_for("postgres", "named")) as other:
        other.execute("LOCK TABLE t")
        with closing(connect(server.reading_dsn("named"))) as connection:
            found = read_policies(connection)
    assert found == (Policy("public", "member", "(team > 0)"), Policy("public", "t", ""))
