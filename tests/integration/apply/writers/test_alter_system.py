"""ALTER SYSTEM with the rights of a superuser runs no operators of others."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest
from tests.fix_servers import RealServer
from tests.unit.apply.receipts import receipt

from pgdyno.apply.runs.undo import find_drift
from pgdyno.apply.session.session import LOADING, locked_session, take
from pgdyno.apply.session.settings import read_gucs
from pgdyno.apply.writers.alter_system import AlterSystemWriter
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.attached_server import AttachedServer
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.connection.connection import connect, connect_to_change
from pgdyno.postgres.inspection.inspection import inspect_server
from pgdyno.postgres.process.workload_databases import WorkloadDatabases

pytestmark = pytest.mark.server


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the developer's own libpq settings out."""
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "no-such-file"))


@pytest.fixture
def hostile(pg18: RealServer) -> Iterator[str]:
    """A database whose owner has put operators of their own before PostgreSQL's."""
    pg18.execute("CREATE DATABASE hostile")
    pg18.execute(
        """
        CREATE SCHEMA planted;
        DO $$ DECLARE t text; BEGIN
            FOREACH t IN ARRAY ARRAY['text', 'name', 'int4', 'int8', 'oid', '"char"'] LOOP
                EXECUTE format('CREATE FUNCTION planted.spy_on(%s, %s) RETURNS boolean LANGUAGE plpgsql AS '
                    || quote_literal('BEGIN RAISE EXCEPTION ''a planted operator was run''; END'), t, t);
                EXECUTE format('CREATE OPERATOR planted.= (PROCEDURE = planted.spy_on, LEFTARG = %s,'
                    ' RIGHTARG = %s)', t, t);
                EXECUTE format('CREATE OPERATOR planted.<> (PROCEDURE = planted.spy_on, LEFTARG = %s,'
                    ' RIGHTARG = %s)', t, t);
            END LOOP; END $$;
        ALTER DATABASE hostile SET search_path = planted, pg_catalog
        """,
        "hostile",
    )
    yield pg18.dsn_for("postgres", "hostile")
    pg18.execute("DROP DATABASE hostile WITH (FORCE)")


def test_operators_that_somebody_has_planted_are_not_run(hostile: str, tmp_path: Path) -> None:
    with psycopg.connect(hostile) as plain, pytest.raises(psycopg.errors.RaiseException):
        plain.execute("SELECT 1 FROM pg_catalog.pg_settings WHERE name = 'port'")
    with contextlib.closing(connect(hostile)) as connection:
        inspected = inspect_server(connection)
    assert inspected.settings["search_path"].setting == "planted, pg_catalog"  # what is configured is seen
    with locked_session(lambda: connect_to_change(hostile)) as session:
        assert read_gucs(session.connection)["port"].needs_restart
        assert find_drift(AlterSystemWriter(session), receipt()) is None
    ours = WorkloadDatabases(hostile, tmp_path, partial(take, lock=LOADING))
    with ours.held():
        assert ours.there() == set()


def test_operators_that_somebody_has_planted_are_not_run_by_an_arm(hostile: str, pg18: RealServer) -> None:
    server = AttachedServer(hostile, str(pg18.socket_directory), pg18.port, "postgres", pid=None)
    arm = Arm(Variant("default"), server, "hostile")
    try:
        arm.prewarm()
        assert arm.effective(["port", "search_path"]) == {
            "port": str(pg18.port),
            "search_path": "planted, pg_catalog",  # as the load has it
        }
        assert arm.holds("SELECT relname = 'pg_class' FROM pg_catalog.pg_class WHERE relname = 'pg_class'")
        assert arm.has_relation("pg_stat_activity")
        with contextlib.closing(arm.connect()) as connection:
            assert connection.execute("SHOW search_path").fetchone() == ('""',)
    finally:
        arm.close()
