"""Captured workloads: a small one with the copy of its database, and replays on a copy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, running_server

from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedStatement,
    CapturedTransaction,
    CapturedWorkload,
    ColumnValue,
    Parameter,
)
from pgdyno.postgres.statement_counts import Seen
from pgdyno.store.workload_file import write_workload_file

KEY = ColumnValue("public.t.id")
STATEMENTS = {
    "moment": ("SELECT id, made FROM t WHERE id = $1", KEY),
    "number": ("SELECT count(*), sum(worth) FROM t WHERE id <= $1", KEY),
    "any": ("SELECT made FROM t WHERE id > $1 LIMIT 3", KEY),
    "clock": ("SELECT clock_timestamp() FROM t WHERE id = $1", KEY),
    "wrong": ("SELECT 1 / (id - id) FROM t WHERE id = $1", KEY),
    "write": ("UPDATE t SET worth = worth + 1 WHERE id = $1", KEY),
}


def workload() -> CapturedWorkload:
    """One transaction of each statement."""
    seen = Seen(1, 1.0, 1, 1, 0)

    def alone(name: str, parameter: Parameter) -> CapturedTransaction:
        weight = 0.1 if name == "wrong" else 1.0  # it always fails
        return CapturedTransaction(weight, (CapturedCall(name, 1.0, (parameter,)),))

    return CapturedWorkload(
        "w",
        "18",
        1,
        "d",
        1.0,
        1,
        tuple(CapturedStatement(name, sql, seen) for name, (sql, _) in STATEMENTS.items()),
        tuple(alone(name, parameter) for name, (_, parameter) in STATEMENTS.items()),
    )


@pytest.fixture
def workload_file(tmp_path: Path, pg18_bin: Path) -> Path:
    """A workload's file, and beside it the copy of its database."""
    with running_server(pg18_bin, "") as server:
        server.execute("CREATE TABLE t (id int PRIMARY KEY, worth float8, made timestamptz)")
        server.execute("CREATE TABLE void (id int PRIMARY KEY)")
        server.execute("INSERT INTO t SELECT n, n / 3.0, '2026-01-01' FROM generate_series(1, 500) n")
        dump = server.directory / "w.dump"
        place = (f"--host={server.socket_directory}", f"--port={server.port}", "--username=postgres")
        server.run("pg_dump", "--format=custom", f"--file={dump}", *place, "postgres")
        (tmp_path / "w.dump").write_bytes(dump.read_bytes())
    write_workload_file(tmp_path / "w.toml", workload())
    return tmp_path / "w.toml"


def replay_on_a_copy(server: RealServer, database: str, file: Path, home: Path) -> Mapping[str, Any]:
    """Replay on a fresh copy of the database for some seconds, and return what was printed as JSON."""
    copy = f"{database}_copy"
    server.execute(f"DROP DATABASE IF EXISTS {copy}")
    server.execute(f"CREATE DATABASE {copy} TEMPLATE {database}")
    arguments = ("--dsn", server.dsn_for("app", copy), "--allow-load", "--for", "2s", "--json")
    done = pgdyno("workload", "replay", str(file), *arguments, PGDYNO_HOME=str(home))
    assert done.returncode == 0, done.stderr
    printed: Mapping[str, Any] = json.loads(done.stdout)
    return printed
