"""A real server's planner: nothing is run or written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import psycopg
import pytest
from tests.fix_servers import RealServer
from tests.integration.cli.test_explain_degree import DATABASE, ROLE, dsn_of
from tests.integration.degree_cases import MADE

from pgdyno.base.errors import ServerError, UsageError
from pgdyno.plan.explain_degree import explain_degree_of
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.inspection.settings import read_settings
from pgdyno.postgres.planner.planner import Planner

pytestmark = pytest.mark.server


@pytest.fixture(scope="module", params=["pg15", "pg18"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    running: RealServer = request.getfixturevalue(request.param)
    running.execute(f"CREATE ROLE {ROLE} LOGIN IN ROLE pg_monitor, pg_read_all_data")
    running.execute(f"CREATE DATABASE {DATABASE} OWNER {ROLE}")
    with psycopg.connect(running.dsn_for(ROLE, DATABASE), autocommit=True) as connection:
        for statements in MADE:
            connection.execute(statements.encode())
        connection.execute("VACUUM ANALYZE")
    yield running
    running.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")
    running.execute(f"DROP ROLE {ROLE}")


def test_the_server_itself_refuses_several_statements(server: RealServer) -> None:
    with contextlib.closing(connect(dsn_of(server, {}))) as connection:
        planner = Planner(connection, "SELECT 1; COMMIT; CREATE TABLE planted ()", read_settings(connection))
        with pytest.raises(UsageError, match="there is more than one statement"):
            planner.plan({})
        assert connection.execute("SELECT to_regclass('public.planted')").fetchone() == (None,)


def test_nothing_can_be_written_even_by_what_the_planner_computes(server: RealServer) -> None:
    with psycopg.connect(dsn_of(server, {}), autocommit=True) as connection:
        connection.execute("CREATE SEQUENCE written")
        connection.execute(
            "CREATE FUNCTION writes(int) RETURNS bigint LANGUAGE plpgsql IMMUTABLE AS"
            " 'BEGIN RETURN nextval(''public.written''); END'"
        )
        with pytest.raises(ServerError) as caught:
            explain_degree_of("SELECT writes(1)", None, dsn_of(server, {}))
        is_called = connection.execute("SELECT is_called FROM written").fetchone()
        connection.execute("DROP FUNCTION writes; DROP SEQUENCE written")
    assert "read-only transaction" in (caught.value.detail or "")
    assert is_called == (False,)


def test_a_locked_table_is_not_waited_for_longer_than_the_role_wants(server: RealServer) -> None:
    with psycopg.connect(dsn_of(server, {})) as holder:
        holder.execute("LOCK TABLE pages_30")
        with pytest.raises(ServerError) as caught:
            explain_degree_of("SELECT count(*) FROM pages_30", None, dsn_of(server, {"lock_timeout": "50ms"}))
        holder.rollback()
    assert caught.value.message == "the statement was not planned in time"
