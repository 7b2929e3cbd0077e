"""Workloads made of pgbench's scripts, replayed on a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, running_server

from pgdyno.model.experiments.captured import Between
from pgdyno.store.workload_file import read_workload_file

pytestmark = pytest.mark.server

_TRANSFER = """\
\\set aid random(1, 100000 * :scale)
\\set delta random(-5000, 5000)
BEGIN;
UPDATE pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime, filler) VALUES (1, 1, :aid, :delta, now(), 'moved');
END;
"""
_LOOK = (
    "\\set aid random_gaussian(1, 1000, 6)\nSELECT abalance FROM pgbench_accounts WHERE aid IN (:aid, 7);\n"
)


@pytest.fixture(scope="module")
def server(pg18_bin: Path) -> Iterator[RealServer]:
    """A server that counts statements, with pgbench's tables of scale 2."""
    with running_server(pg18_bin, "shared_preload_libraries = 'pg_stat_statements'\n") as started:
        started.execute("CREATE DATABASE bank")
        started.execute("CREATE EXTENSION pg_stat_statements", "bank")
        place = (
            f"--host={started.socket_directory}",
            f"--port={started.port}",
            "--username=postgres",
            "bank",
        )
        started.run("pgbench", "--initialize", "--quiet", "--scale=2", *place)
        started.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data")
        started.execute("CREATE DATABASE bank_copy TEMPLATE bank")
        yield started


def test_scripts_are_a_workload_that_is_replayed(server: RealServer, tmp_path: Path, home: Path) -> None:
    transfer, look, file = tmp_path / "transfer.sql", tmp_path / "look.sql", tmp_path / "bank.toml"
    transfer.write_text(_TRANSFER)
    look.write_text(_LOOK)
    scripts = ("--script", f"{transfer}@9", "--script", str(look))
    captured = pgdyno("workload", "capture", "--dsn", server.reading_dsn("bank"), *scripts, str(file))
    assert captured.returncode == 0, captured.stderr
    workload = read_workload_file(file)
    assert [(one.weight, len(one.calls)) for one in workload.transactions] == [(9.0, 4), (1.0, 1)]
    update = workload.transactions[0].calls[1]
    assert update.parameters == (Between(-5000, 5000), Between(1, 200_000))
    assert workload.transactions[1].calls[0].parameters == (Between(1, 1000, "gaussian", 6.0),)
    assert workload.protocol == "prepared"
    assert "is pgbench's option --protocol and not in the script: statements are assumed" in captured.stdout

    arguments = ("--dsn", server.dsn_for("app", "bank_copy"), "--allow-load", "--for", "3s", "--json")
    replayed = pgdyno("workload", "replay", str(file), *arguments, PGDYNO_HOME=str(home))
    assert replayed.returncode == 0, replayed.stderr
    found = json.loads(replayed.stdout)
    assert found["replay"]["run"]["failures"] == []
    assert found["likeness"] >= 0.9, found
    [[moved]] = server.execute("SELECT count(*) FROM pgbench_history WHERE filler = 'moved'", "bank_copy")
    assert moved > 0


@pytest.mark.parametrize(("sql", "is_read_only"), [("SELECT log('a');", False), ("SELECT sqrt(2.0);", True)])
def test_a_function_that_shares_a_name_with_postgresqls_may_write(
    server: RealServer,
    tmp_path: Path,
    sql: str,
    is_read_only: bool,  # noqa: FBT001
) -> None:
    server.execute("CREATE TABLE IF NOT EXISTS stage (t text)", "bank")
    server.execute(
        "CREATE OR REPLACE FUNCTION log(t text) RETURNS void LANGUAGE sql AS 'INSERT INTO stage VALUES (t)'",
        "bank",
    )
    script, file = tmp_path / "log.sql", tmp_path / "log.toml"
    script.write_text(sql)
    dsn = server.reading_dsn("bank")
    done = pgdyno("workload", "capture", "--dsn", dsn, "--script", str(script), str(file))
    assert done.returncode == 0, done.stderr
    assert read_workload_file(file).is_read_only is is_read_only


def test_what_no_workload_can_have_is_refused(server: RealServer, tmp_path: Path) -> None:
    def refused(script: str, database: str = "bank") -> str:
        file = tmp_path / "script.sql"
        file.write_text(script)
        arguments = ("--dsn", server.reading_dsn(database), "--script", str(file))
        done = pgdyno("workload", "capture", *arguments, str(tmp_path / "w.toml"))
        assert done.returncode == 2, done.stderr
        return done.stderr

    touched = tmp_path / "touched"
    shell = refused(f"\\shell touch {touched}\n")
    assert '"script.sql", line 1: a workload does not support \\shell' in shell
    assert not touched.exists()
    wrong = refused("SELECT 1;\nSELECT nothing FROM nowhere;\n")
    assert '"script.sql", line 2: the server cannot prepare the statement' in wrong
    assert 'relation "nowhere" does not exist' in wrong
    lost = refused("SELECT :scale;", "postgres")
    assert "a script uses :scale, but the database has no table pgbench_branches with it" in lost
    arguments = ("--script", "none.sql", "--for", "5s", str(tmp_path / "w.toml"))
    both = pgdyno("workload", "capture", "--dsn", server.dsn, *arguments)
    assert "--script and --for are mutually exclusive" in both.stderr
