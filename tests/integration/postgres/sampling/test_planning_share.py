"""What pg_stat_statements tells about planning, and what is said where it tells nothing."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest
from tests.fix_servers import RealServer

from pgdyno.base.facts import Fact, Unknown
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.inspection.settings import read_settings
from pgdyno.postgres.sampling.planning_share import read_planning_share
from pgdyno.postgres.statements import PlanningShare

pytestmark = pytest.mark.server


def share_of(server: RealServer) -> Fact[PlanningShare]:
    with closing(connect(server.dsn)) as connection:
        return read_planning_share(connection, read_settings(connection))


def why_unknown(server: RealServer) -> str:
    found = share_of(server).value
    assert isinstance(found, Unknown)
    return found.reason


def restart(server: RealServer) -> None:
    server.stop()
    server.start()


def test_what_is_missing_is_said_until_planning_is_counted(scratch_pg15: RealServer) -> None:
    server = scratch_pg15
    assert why_unknown(server) == "pg_stat_statements is not in shared_preload_libraries"
    with closing(psycopg.connect(server.dsn, autocommit=True)) as connection:
        if not connection.execute(
            "SELECT 1 FROM pg_available_extensions WHERE name = 'pg_stat_statements'"
        ).fetchone():
            pytest.skip("PostgreSQL's pg_stat_statements is not installed")
        connection.execute("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'")
    restart(server)
    assert why_unknown(server) == "pg_stat_statements.track_planning is off"
    with closing(psycopg.connect(server.dsn, autocommit=True)) as connection:
        connection.execute("ALTER SYSTEM SET pg_stat_statements.track_planning = on")
        connection.execute("SELECT pg_reload_conf()")
    restart(server)
    assert why_unknown(server) == "this database has no extension pg_stat_statements"
    with closing(psycopg.connect(server.dsn, autocommit=True)) as connection:
        connection.execute('CREATE SCHEMA "Own"')
        connection.execute('CREATE EXTENSION pg_stat_statements SCHEMA "Own"')
        connection.execute('SELECT "Own".pg_stat_statements_reset()')
        connection.execute("SET plan_cache_mode = force_custom_plan")
        connection.execute("PREPARE one AS SELECT count(*) FROM pg_class WHERE oid = $1")
        for _ in range(3):
            connection.execute("EXECUTE one(1)")
    found = share_of(server).or_none()
    assert found is not None
    assert found.plans >= 3
    assert found.calls >= 3
    assert 0 < found.share < 1
