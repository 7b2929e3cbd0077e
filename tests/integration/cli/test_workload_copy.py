"""A copy for a captured workload: it reaches nowhere, and nothing in it runs as a superuser."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fix_bank import SETTINGS, capture, initialise, repeating, transfers
from tests.fix_copies import bench_briefly
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer

from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedWorkload,
    ColumnValue,
)

pytestmark = pytest.mark.server


def calls_of(workload: CapturedWorkload) -> list[CapturedCall]:
    return [call for one in workload.transactions for call in one.calls]


_REACHING_OUT = """
CREATE EXTENSION postgres_fdw;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host 'production');
CREATE USER MAPPING FOR CURRENT_USER SERVER elsewhere OPTIONS (user 'u', password 'planted-in-a-mapping');
CREATE FUNCTION noted() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN END';
CREATE EVENT TRIGGER noted ON ddl_command_end EXECUTE FUNCTION noted();
CREATE PUBLICATION everything FOR ALL TABLES;
CREATE FUNCTION plain(text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF current_database() <> 'bank' AND (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        RAISE EXCEPTION 'planted code runs as a superuser';
    END IF;
    RETURN $1;
END $$;
CREATE EXTENSION citext;
CREATE TABLE notes (id integer PRIMARY KEY, body text, kind citext);
INSERT INTO notes SELECT n, 'note ' || n, 'a' FROM generate_series(1, 1000) n;
CREATE INDEX ON notes (plain(body));
CREATE SCHEMA planted;
CREATE FUNCTION planted.act(text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    IF current_database() <> 'bank' AND
       (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user) THEN
        RAISE EXCEPTION 'planted code runs as a superuser';
    END IF;
    RETURN $1;
END $$;
CREATE VIEW planted.pg_available_extensions AS SELECT planted.act('x') AS name;
CREATE VIEW planted.pg_class AS SELECT planted.act('x') AS relname;
CREATE FUNCTION planted.set_path() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE pg_catalog.format('ALTER DATABASE %I SET search_path = planted, pg_catalog', current_database());
    RETURN true;
END $$;
CREATE TYPE planted.mood AS ENUM ('good');
CREATE FUNCTION planted.said(planted.mood) RETURNS text LANGUAGE plpgsql AS $$
BEGIN RETURN planted.act('good'); END $$;
CREATE CAST (planted.mood AS text) WITH FUNCTION planted.said(planted.mood);
CREATE TABLE moods (id integer PRIMARY KEY, mood planted.mood, CHECK (planted.set_path()));
INSERT INTO moods VALUES (1, 'good');
CREATE SCHEMA ext;
CREATE EXTENSION hstore SCHEMA ext;
CREATE TABLE pairs (id integer PRIMARY KEY, pair ext.hstore);
"""
_MOODY = "SELECT id FROM public.moods WHERE mood = 'good'"


def test_a_captured_workload_is_measured_on_a_copy_that_reaches_nowhere(
    scratch_pg18: RealServer, tmp_path: Path, home: Path
) -> None:
    server = scratch_pg18
    server.append_configuration(SETTINGS)
    server.restart()
    server.execute("CREATE DATABASE bank")
    server.execute("CREATE EXTENSION pg_stat_statements", "bank")
    server.execute(_REACHING_OUT, "bank")
    server.execute("ALTER DATABASE bank RESET search_path")  # which a constraint of moods has set
    initialise(server)
    file, dsn = tmp_path / "bank.toml", server.dsn_for("postgres", "bank")
    with transfers(server), repeating(server, _MOODY):
        workload = capture(server, "bank", file, seconds=4)
    assert any(ColumnValue("public.moods.mood") in call.parameters for call in calls_of(workload))

    copied = pgdyno("workload", "copy", str(file), "--dsn", dsn)
    assert copied.returncode == 0, copied.stderr
    dump = tmp_path / "bank.dump"
    assert dump.stat().st_mode & 0o777 == 0o600
    again = pgdyno("workload", "copy", str(file), "--dsn", dsn)
    assert "already exists" in again.stderr

    original = dump.read_bytes()
    dump.unlink()
    synthetic = pgdyno("workload", "copy", str(file), "--dsn", dsn, "--synthetic", PGDYNO_HOME=str(home))
    assert synthetic.returncode == 0, synthetic.stderr
    assert "planted" not in synthetic.stdout  # such as "planted code runs as a superuser"
    assert "the copy lacks extension postgres_fdw" in synthetic.stdout
    dump.write_bytes(original)

    measured = bench_briefly(server, file, home)
    assert measured.returncode == 0, measured.stderr
    for kind in ("EVENT TRIGGER", "SERVER", "USER MAPPING", "extension postgres_fdw"):
        assert f"copy: restored without {kind}" in measured.stderr
    assert "extension citext" not in measured.stderr
    assert "bank, default: " in measured.stdout, measured.stdout
    assert "bank: likeness " in measured.stdout
