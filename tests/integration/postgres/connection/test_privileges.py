"""Code that a role has planted in its database, and commands that meet it: none runs it as a superuser.

The planted functions take back a SET ROLE before they look whether they have a superuser's rights.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.fix_home import Run, pgdyno
from tests.fix_servers import RealServer, as_unprivileged, running_server, wait_until
from tests.fix_settings import settings_of

from pgdyno.base.facts import Unknown
from pgdyno.postgres.connection.connection import connect
from pgdyno.postgres.connection.privileges import power_of
from pgdyno.postgres.connection.query import ask_rows
from pgdyno.postgres.sampling import planning_share
from pgdyno.postgres.statements import PlanningShare
from pgdyno.store.workload_file import read_workload_file, write_workload_file

pytestmark = pytest.mark.server
_SHOP, _OWNED = "shop", "owned"
_PLANTED = """
CREATE SCHEMA mallory AUTHORIZATION mallory;
GRANT USAGE ON SCHEMA mallory TO PUBLIC;
SET SESSION AUTHORIZATION mallory;
CREATE FUNCTION mallory.mark() RETURNS void VOLATILE LANGUAGE plpgsql AS $$
BEGIN
    BEGIN
        PERFORM pg_catalog.set_config('role', 'none', false);
        RESET ROLE;
        RESET SESSION AUTHORIZATION;
    EXCEPTION WHEN insufficient_privilege THEN  -- while an index is built
    END;
    IF (SELECT usesuper FROM pg_catalog.pg_user WHERE usename OPERATOR(pg_catalog.=) current_user)
       OR pg_catalog.pg_has_role('pg_write_server_files', 'USAGE') THEN
        EXECUTE $q$COPY (SELECT current_user) TO '{marker}'$q$;
    END IF;
END $$;
CREATE FUNCTION mallory.f(x int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS
    $$ BEGIN PERFORM mallory.mark(); RETURN 1; END $$;
CREATE FUNCTION mallory.check(v text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS
    $$ BEGIN PERFORM mallory.mark(); RETURN true; END $$;
CREATE DOMAIN mallory.checked AS text CHECK (mallory.check(VALUE));
CREATE TABLE mallory.indexed (id int PRIMARY KEY, note text);
INSERT INTO mallory.indexed SELECT g, 'n' FROM generate_series(1, 1000) g;
CREATE INDEX ON mallory.indexed ((mallory.f(1) + id));
CREATE TYPE mallory.k AS (x int);
CREATE FUNCTION mallory.cast(t text) RETURNS mallory.k VOLATILE LANGUAGE plpgsql AS
    $$ BEGIN PERFORM mallory.mark(); RETURN ROW(pg_catalog.btrim(t, '()')::int)::mallory.k; END $$;
CREATE CAST (text AS mallory.k) WITH FUNCTION mallory.cast(text);
CREATE TABLE mallory.prod (k mallory.k PRIMARY KEY);
INSERT INTO mallory.prod SELECT ROW(g)::mallory.k FROM generate_series(1, 500) g;
CREATE TABLE mallory.cust (id int PRIMARY KEY);
INSERT INTO mallory.cust SELECT g FROM generate_series(1, 1000) g;
CREATE TABLE mallory.item (id int PRIMARY KEY, cust int REFERENCES mallory.cust ON DELETE CASCADE,
    k mallory.k REFERENCES mallory.prod);
INSERT INTO mallory.item SELECT g, g, ROW(1 + (g * 7) % 500)::mallory.k FROM generate_series(1, 1000) g;
GRANT SELECT ON ALL TABLES IN SCHEMA mallory TO PUBLIC;
ANALYZE mallory.indexed, mallory.prod, mallory.cust, mallory.item;
"""
# Whoever looks a type or an operator up in the search path of this database meets an error.
_SHADOWING = """
SET SESSION AUTHORIZATION dbo;
CREATE SCHEMA s;
CREATE FUNCTION s.boom() RETURNS void LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'planted code was run'; END $$;
CREATE FUNCTION s.chk(v pg_catalog."char") RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS
    $$ BEGIN PERFORM s.boom(); RETURN true; END $$;
CREATE FUNCTION s.chk2(v pg_catalog.text) RETURNS boolean IMMUTABLE LANGUAGE plpgsql AS
    $$ BEGIN PERFORM s.boom(); RETURN true; END $$;
CREATE FUNCTION s.same(a pg_catalog.text, b pg_catalog.text) RETURNS boolean LANGUAGE plpgsql AS
    $$ BEGIN PERFORM s.boom(); RETURN true; END $$;
CREATE OPERATOR s.= (PROCEDURE = s.same, LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text);
CREATE DOMAIN s."char" AS pg_catalog."char" CHECK (s.chk(VALUE));
CREATE DOMAIN s.text AS pg_catalog.text CHECK (s.chk2(VALUE));
CREATE DOMAIN s.name AS pg_catalog.name CHECK (s.chk2(VALUE::pg_catalog.text));
CREATE TABLE s.t (id int PRIMARY KEY, n pg_catalog.text);
INSERT INTO s.t SELECT g, 'x' FROM generate_series(1, 1000) g;
ANALYZE s.t;
ALTER DATABASE owned SET search_path = s, pg_catalog;
"""
_LOAD = """
\\set id random(1, 1000)
SELECT note FROM mallory.indexed WHERE id = :id AND mallory.f(:id) = 1;
"""
_LOOKING = (
    ("inspect",), ("levers",), ("advise",), ("status",), ("revert", "--dry-run"),
    ("apply", "--dry-run", "--allow-restart"),
)  # fmt: skip


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    with running_server(pg18_bin, "shared_preload_libraries = 'pg_stat_statements'\n") as started:
        for role in ("mallory", "dbo", "app"):
            started.execute(f"CREATE ROLE {role} LOGIN")
        started.execute("CREATE ROLE ops LOGIN IN ROLE pg_write_server_files, pg_read_all_data NOINHERIT")
        started.execute("CREATE ROLE boss LOGIN IN ROLE postgres NOINHERIT")
        started.execute("CREATE ROLE copying LOGIN REPLICATION")
        started.execute(f"CREATE DATABASE {_SHOP}")
        started.execute(f"CREATE DATABASE {_OWNED} OWNER dbo")
        for database, statements in ((_SHOP, _PLANTED), (_OWNED, _SHADOWING)):
            started.execute("CREATE EXTENSION pg_stat_statements", database)
            text = statements.replace("{marker}", str(marker_of(started)))
            with psycopg.connect(started.dsn_for("postgres", database), autocommit=True) as connection:
                connection.execute(text.encode())
        yield started


def marker_of(server: RealServer) -> Path:
    """The file that planted code writes where it has the rights."""
    return server.directory / "planted"


@pytest.fixture(autouse=True)
def nothing_is_marked(server: RealServer) -> Iterator[None]:
    marker_of(server).unlink(missing_ok=True)
    yield
    assert not marker_of(server).exists(), marker_of(server).read_text()


@contextmanager
def load(server: RealServer) -> Iterator[None]:
    """Mallory's statement, again and again."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(_LOAD)
        script.flush()
        Path(script.name).chmod(0o644)
        where = ("-h", str(server.socket_directory), "-p", str(server.port), "-U", "mallory")
        process = subprocess.Popen(
            [
                *(*as_unprivileged(), str(server.bin_directory / "pgbench"), "-n", *where),
                *("-M", "prepared", "-c", "1", "-T", "250", "-R", "50", "-f", script.name, _SHOP),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            working = "SELECT count(*) FROM pg_stat_activity WHERE usename = 'mallory'"
            wait_until(lambda: server.execute(working) == [(1,)] or process.poll() is not None)
            assert process.poll() is None, "pgbench has failed"
            yield
        finally:
            process.terminate()
            process.wait()


@pytest.fixture(scope="module")
def captured(server: RealServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workload that has mallory's statement."""
    file = tmp_path_factory.mktemp("captured") / "shop.toml"
    with load(server):
        dsn = server.reading_dsn(_SHOP)
        done = pgdyno("workload", "capture", "--dsn", dsn, "--for", "3s", str(file))
    assert done.returncode == 0, done.stderr
    assert any("mallory.f" in one.sql for one in read_workload_file(file).statements)
    return file


def commands(server: RealServer, captured: Path, tmp_path: Path) -> dict[str, list[str]]:
    """Commands that plan, parse, cast or run what is mallory's."""
    script = tmp_path / "constants.sql"
    script.write_text(
        "\\set id random(1, 1000)\n"
        "SELECT note FROM mallory.indexed WHERE id = :id AND note <> ALL ('{a}'::mallory.checked[]);\n"
    )
    copied = tmp_path / "copied.toml"
    write_workload_file(copied, replace(read_workload_file(captured), name="copied"))
    new, query = str(tmp_path / "new.toml"), "SELECT count(*) FROM mallory.indexed WHERE mallory.f(1) = 1"
    return {
        "explain": ["explain-degree", query],
        "explain index": ["explain-degree", "SELECT count(*) FROM mallory.indexed"],
        "explain workload": ["explain-degree", "--workload", str(captured)],
        "capture": ["workload", "capture", "--for", "1s", new],
        "script": ["workload", "capture", "--script", str(script), new],
        "sample": ["workload", "copy", "--sample", "--share", "0.1", str(copied)],
        "replay": ["workload", "replay", "--allow-load", "--is-copy", "--for", "1s", str(captured)],
        "query": ["run", "parallel-degree", "--allow-load", "--budget", "1m", "--query", query],
    }


@pytest.mark.parametrize("role", ["postgres", "boss", "ops", "copying"])
@pytest.mark.parametrize(
    "name", ["explain", "explain index", "explain workload", "capture", "script", "sample", "replay", "query"]
)
def test_a_role_with_rights_over_the_server_is_refused(
    server: RealServer, captured: Path, tmp_path: Path, own_home: Path, name: str, role: str
) -> None:
    arguments = commands(server, captured, tmp_path)[name]
    done = pgdyno(*arguments, "--dsn", server.dsn_for(role, _SHOP))
    power = {
        "postgres": 'role "postgres" is a superuser',
        "boss": 'role "boss" can become "postgres", a superuser',
        "ops": 'role "ops" is a member of pg_write_server_files',
        "copying": 'role "copying" has REPLICATION',
    }
    assert done.returncode == 4, done.stdout + done.stderr
    assert power[role] in done.stderr
    assert f"--dsn 'host={server.socket_directory} port={server.port} dbname={_SHOP} user=…'" in done.stderr


@pytest.mark.root
def test_a_data_directory_does_not_make_a_superuser(
    server: RealServer, captured: Path, own_home: Path
) -> None:
    where = ("--pgdata", str(server.data_directory), "--dbname", _SHOP)
    refused = pgdyno("explain-degree", *where, "--workload", str(captured))
    assert refused.returncode == 4, refused.stdout
    assert "is a superuser" in refused.stderr
    server.reading_dsn()
    done = pgdyno("explain-degree", *where, "--workload", str(captured), PGUSER="reading")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["explain", "explain index", "explain workload", "script", "sample"])
def test_a_role_that_only_reads_meets_planted_code_without_rights(
    server: RealServer, captured: Path, tmp_path: Path, home: Path, name: str
) -> None:
    arguments = commands(server, captured, tmp_path)[name]
    done = pgdyno(*arguments, "--dsn", server.reading_dsn(_SHOP), PGDYNO_HOME=str(home))
    assert done.returncode == 0, done.stderr


def test_the_creator_of_roles_counts_before_postgresql_16(pg15: RealServer) -> None:
    pg15.execute("CREATE ROLE creating LOGIN CREATEROLE")
    try:
        done: Run = pgdyno("explain-degree", "SELECT 1", "--dsn", pg15.dsn_for("creating"))
    finally:
        pg15.execute("DROP ROLE creating")
    assert done.returncode == 4, done.stdout
    assert 'role "creating" has CREATEROLE' in done.stderr


def test_the_creator_of_roles_has_no_such_rights_since(server: RealServer) -> None:
    server.execute("CREATE ROLE creating LOGIN CREATEROLE")
    done = pgdyno("explain-degree", "SELECT 1", "--dsn", server.dsn_for("creating"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("arguments", _LOOKING, ids=" ".join)
def test_types_and_operators_that_shadow_postgresqls_are_not_found(
    server: RealServer, home: Path, arguments: tuple[str, ...]
) -> None:
    dsn = server.dsn_for("postgres", _OWNED)
    done = pgdyno(*arguments, "--dsn", dsn, PGDYNO_HOME=str(home))
    assert done.returncode == 0, done.stderr


def test_a_capture_finds_none_of_them_either(server: RealServer, tmp_path: Path, own_home: Path) -> None:
    script = tmp_path / "app.sql"
    script.write_text("\\set id random(1, 1000)\nSELECT n FROM t WHERE id = :id;\n")
    arguments = ("workload", "capture", "--script", str(script), str(tmp_path / "w.toml"))
    done = pgdyno(*arguments, "--dsn", server.reading_dsn(_OWNED))
    assert done.returncode == 0, done.stderr
    assert read_workload_file(tmp_path / "w.toml").search_path == "s, pg_catalog"


def test_a_superuser_that_became_another_role_is_still_one(server: RealServer) -> None:
    """As a pooler does it whose connect_query sets the role: code takes it back."""
    with psycopg.connect(server.dsn_for("postgres", _SHOP), autocommit=True) as connection:
        connection.execute("SET SESSION AUTHORIZATION app")
        assert power_of(connection) == 'can become "postgres", a superuser'
    with closing(connect(server.dsn_for("app", _SHOP))) as connection:
        assert power_of(connection) is None


_EXCHANGED = """
CREATE FUNCTION s.marks() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE 'COPY (SELECT current_user) TO PROGRAM ''cat > {marker}''';
    RETURN true;
EXCEPTION WHEN insufficient_privilege THEN RETURN true;
END $$;
CREATE VIEW s.pg_stat_statements AS
SELECT 1::pg_catalog.int8 AS plans, 1::pg_catalog.int8 AS calls, 1::pg_catalog.float8 AS total_plan_time,
       1::pg_catalog.float8 AS total_exec_time, d.oid AS dbid
  FROM pg_catalog.pg_database d
 WHERE d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database() AND s.marks();
GRANT USAGE ON SCHEMA s TO PUBLIC;
GRANT SELECT ON s.pg_stat_statements TO PUBLIC;
"""
_EXCHANGE = "ALTER SCHEMA public RENAME TO former; ALTER SCHEMA s RENAME TO public"
_PUT_BACK = "ALTER SCHEMA public RENAME TO s; ALTER SCHEMA former RENAME TO public"
_TRACKED = "pg_stat_statements.track_planning"


def test_a_schema_that_its_owner_could_exchange_is_not_read_as_a_superuser(
    server: RealServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The owner of the database exchanges it when its name has been read, before it is used."""

    def as_owner(statements: str) -> None:
        with psycopg.connect(server.dsn_for("dbo", _OWNED), autocommit=True) as beside:
            beside.execute("SET search_path = pg_catalog")
            beside.execute(statements.encode())

    def asked_then_exchanged(*question: Any) -> Any:
        answer = ask_rows(*question)
        as_owner(_EXCHANGE)
        return answer

    as_owner(_EXCHANGED.replace("{marker}", str(marker_of(server))))
    monkeypatch.setattr(planning_share, "ask_rows", asked_then_exchanged)
    tracked = {_TRACKED: replace(settings_of(18)["work_mem"], name=_TRACKED, setting="on")}
    found = {}
    try:
        for role in ("postgres", "app"):
            with closing(connect(server.dsn_for(role, _OWNED))) as connection:
                found[role] = planning_share.read_planning_share(connection, tracked).value
            as_owner(_PUT_BACK)
    finally:
        as_owner("DROP VIEW s.pg_stat_statements")
    assert isinstance(found["postgres"], Unknown)
    assert found["postgres"].reason.startswith(
        'the schema "public" of pg_stat_statements, or the extension, is'
    )
    assert found["app"] == PlanningShare(1, 1, 1.0, 1.0)
