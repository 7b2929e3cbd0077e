"""An owner's server under test: no code of others runs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import nullcontext as does_not_raise
from pathlib import Path

import pytest
from tests.fix_servers import RealServer

from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.attached_server import AttachedServer
from pgdyno.model.variants.variant import Variant

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


def test_an_arm_keeps_its_session_and_tells_what_others_have(hostile: str, pg18: RealServer) -> None:
    chosen = {"idle_session_timeout": "1min", "extra_float_digits": "-15", "lock_timeout": "1min"}
    for name, value in chosen.items():
        pg18.execute(f"ALTER DATABASE hostile SET {name} = '{value}'")
    server = AttachedServer(hostile, str(pg18.socket_directory), pg18.port, "postgres", pid=None)
    arm = Arm(Variant("default"), server, "hostile")
    with contextlib.closing(arm):
        assert arm.query("SELECT 123456.789::pg_catalog.float8") == (123456.789,)
        assert arm.effective(chosen) == chosen
        assert arm.query("SELECT 123456.789::pg_catalog.float8") == (123456.789,)
        assert arm.rows("SHOW idle_session_timeout") == [("0",)]


def test_a_function_beside_the_one_of_an_extension_is_not_run(hostile: str, pg18: RealServer) -> None:
    pg18.execute(
        """
        CREATE EXTENSION pg_prewarm SCHEMA planted;
        CREATE FUNCTION planted.pg_prewarm(pg_catalog.regclass) RETURNS int8 LANGUAGE plpgsql AS
            $$ BEGIN RAISE EXCEPTION 'a planted function was run'; END $$
        """,
        "hostile",
    )
    server = AttachedServer(hostile, str(pg18.socket_directory), pg18.port, "postgres", pid=None)
    arm = Arm(Variant("default"), server, "hostile")
    with contextlib.closing(arm), does_not_raise():
        arm.prewarm()
