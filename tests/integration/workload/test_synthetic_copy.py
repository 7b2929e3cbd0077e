"""Synthetic copies of real databases: measured, replayed on, and refused with the reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fix_copies import bench_briefly, make_up, restored, running_originals, workload_file
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer
from tests.shop import buying

from pgdyno.model.experiments.captured import ColumnValue

pytestmark = pytest.mark.server
_FAILS_ON_THE_SCRATCH_SERVER = """
CREATE FUNCTION fails(int) RETURNS bool IMMUTABLE LANGUAGE plpgsql AS $$ BEGIN
    IF current_user = 'pgdyno_copy' THEN
        RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
    END IF;
    RETURN true;
END $$
"""


@pytest.fixture(scope="module", params=[pytest.param("pg15_bin", marks=pytest.mark.long), "pg18_bin"])
def server(request: pytest.FixtureRequest) -> Iterator[RealServer]:
    """A server with two shops and pgbench's bank."""
    with running_originals(request.getfixturevalue(request.param), "shop", "busy", "bank") as started:
        yield started


def test_a_captured_workload_is_replayed_on_a_synthetic_copy(
    server: RealServer, tmp_path: Path, home: Path
) -> None:
    server.execute("CREATE EXTENSION IF NOT EXISTS pg_stat_statements", "busy")
    server.execute("ANALYZE", "busy")
    file, dsn = tmp_path / "busy.toml", server.dsn_for("postgres", "busy")
    with buying.load(dsn):
        captured = pgdyno(
            "workload", "capture", "--dsn", server.reading_dsn("busy"), "--for", "4s", str(file)
        )
    assert captured.returncode == 0, captured.stderr
    server.execute("ANALYZE", "busy")
    made = make_up(server, "busy", file, home)
    assert "the copy lacks extension pg_stat_statements" in made["notes"]
    database = restored(server, Path(made["dump"]))
    server.execute("CREATE EXTENSION pg_stat_statements", database)
    server.execute("ANALYZE", database)
    server.execute("DROP ROLE IF EXISTS app")
    server.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
    arguments = ("--dsn", server.dsn_for("app", database), "--allow-load", "--for", "2s", "--json")
    replayed = pgdyno("workload", "replay", str(file), *arguments, PGDYNO_HOME=str(home))
    assert replayed.returncode == 0, replayed.stderr
    found = json.loads(replayed.stdout)["replay"]
    assert found["likeness"]["by_quantity"]["calls"] >= 0.9, found
    assert found["likeness"]["by_quantity"]["blocks"] >= 0.8, found
    assert sum(one["count"] for one in found["run"]["failures"]) < 0.01 * found["run"]["transactions"]


@pytest.mark.parametrize("server", ["pg18_bin"], indirect=True)
def test_a_copy_is_measured(server: RealServer, tmp_path: Path, home: Path) -> None:
    sql = "SELECT abalance, pg_sleep(0.01) FROM pgbench_accounts WHERE aid = $1"
    parameters = ("public.pgbench_accounts.aid",)
    file = workload_file(server, "bank", tmp_path, sql, tuple(map(ColumnValue, parameters)))
    make_up(server, "bank", file, home, "--share", "0.1")
    measured = bench_briefly(server, file, home)
    assert measured.returncode == 0, measured.stderr
    assert "bank, default: " in measured.stdout, measured.stdout
    assert "bank runs on made-up rows, 10" in measured.stdout, measured.stdout


def test_what_is_not_possible_is_said(server: RealServer, tmp_path: Path, home: Path) -> None:
    file = workload_file(server, "shop", tmp_path)
    server.execute("DROP ROLE IF EXISTS visitor")
    server.execute("CREATE ROLE visitor LOGIN")
    copy = ("workload", "copy", str(file), "--dsn")
    closed = pgdyno(*copy, server.dsn_for("visitor", "shop"), "--synthetic", PGDYNO_HOME=str(home))
    assert (closed.returncode, "could not copy the database" in closed.stderr) == (1, True)
    assert "permission denied for table" in closed.stderr
    other = pgdyno(*copy, server.dsn_for("reader", "bank"), "--synthetic", PGDYNO_HOME=str(home))
    assert 'database "bank" is not the one that' in other.stderr
    share = pgdyno(*copy, server.dsn_for("reader", "shop"), "--share", "0.5", PGDYNO_HOME=str(home))
    assert (share.returncode, "add --sample or --synthetic" in share.stderr) == (2, True)
    file.with_suffix(".dump").write_text("mine")
    there = pgdyno(*copy, server.dsn_for("reader", "shop"), "--synthetic", PGDYNO_HOME=str(home))
    assert "already exists" in there.stderr
    assert file.with_suffix(".dump").read_text() == "mine"


@pytest.mark.parametrize(
    "table",
    [
        "CREATE TABLE strict (id int CHECK (fails(id)))",
        "CREATE TABLE strict (id int); CREATE INDEX ON strict (fails(id))",
        "CREATE TABLE strict (id int); CREATE MATERIALIZED VIEW failing AS SELECT fails(id) FROM strict",
    ],
)
def test_a_full_disk_is_not_taken_for_rows_that_break_something(
    server: RealServer, tmp_path: Path, home: Path, table: str
) -> None:
    server.execute("DROP DATABASE IF EXISTS strict")
    server.execute("CREATE DATABASE strict")
    server.execute(_FAILS_ON_THE_SCRATCH_SERVER, "strict")
    server.execute(table, "strict")
    server.execute("INSERT INTO strict VALUES (1); ANALYZE", "strict")
    file, dsn = workload_file(server, "strict", tmp_path), server.dsn_for("reader", "strict")
    copied = pgdyno(*("workload", "copy", str(file), "--dsn", dsn, "--synthetic"), PGDYNO_HOME=str(home))
    assert (copied.returncode, "No space left on device" in copied.stderr) == (1, True), copied.stderr
    assert "unforeseen" not in copied.stderr
    assert not file.with_suffix(".dump").exists()
