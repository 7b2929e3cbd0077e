"""Copies of databases: originals, a workload of each, and copies made and restored."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fix_bank import initialise
from tests.fix_home import Run, pgdyno
from tests.fix_servers import RealServer, running_server
from tests.shop import buying, market, warehouse

from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedStatement,
    CapturedTransaction,
    CapturedWorkload,
    Parameter,
)
from pgdyno.postgres.statement_counts import Seen
from pgdyno.store.workload_file import write_workload_file

_SETTINGS = "shared_preload_libraries = 'pg_stat_statements'\nautovacuum = off\n"
SCHEMA = """
SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) || convalidated
FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_index
    JOIN pg_class c ON c.oid = indexrelid WHERE relnamespace = 'public'::regnamespace
"""
PERIODS = """
CREATE EXTENSION btree_gist;
CREATE TABLE rooms (id int, held daterange, PRIMARY KEY (id, held WITHOUT OVERLAPS));
INSERT INTO rooms SELECT n, daterange(date '2024-01-01' + k * 10, date '2024-01-11' + k * 10)
    FROM generate_series(1, 500) n, generate_series(0, 4) k;
CREATE TABLE stays (id int PRIMARY KEY, room int, held daterange,
    FOREIGN KEY (room, PERIOD held) REFERENCES rooms (id, PERIOD held));
INSERT INTO stays
    SELECT n, 1 + n % 500, daterange('2024-01-05', '2024-01-25') FROM generate_series(1, 5000) n;
"""
_TABLES = """
SELECT oid::regclass::text FROM pg_class
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
"""

_MAKE = {"busy": buying.make, "market": market.make, "shop": buying.make, "warehouse": warehouse.make}


@contextmanager
def running_originals(bin_directory: Path, *databases: str) -> Iterator[RealServer]:
    """A server with databases to copy, ``bank`` being pgbench's, and a role that may only read."""
    with running_server(bin_directory, _SETTINGS) as started:
        started.execute("CREATE ROLE reader LOGIN IN ROLE pg_read_all_data")
        for database in databases:
            started.execute(f"CREATE DATABASE {database}")
            if database == "bank":
                initialise(started)
            else:
                _MAKE[database](started.dsn_for("postgres", database))
        yield started


def workload_file(
    server: RealServer,
    database: str,
    directory: Path,
    sql: str = "SELECT 1",
    parameters: tuple[Parameter, ...] = (),
) -> Path:
    """Write a workload of one statement, as if it was captured from a database."""
    [[cluster]] = server.execute("SELECT system_identifier FROM pg_control_system()")
    seen = Seen(calls=1, time_ms=1.0, rows=1, blocks=1, wal_records=0)
    file = directory / f"{database}.toml"
    write_workload_file(
        file,
        CapturedWorkload(
            name=database,
            server_version="18",
            cluster=cluster,
            database=database,
            seconds=1.0,
            clients=1,
            statements=(CapturedStatement("one", sql, seen),),
            transactions=(CapturedTransaction(1, (CapturedCall("one", 1.0, parameters),)),),
        ),
    )
    return file


def make_up(
    server: RealServer, database: str, file: Path, home: Path, *options: str, role: str = "reader"
) -> Mapping[str, Any]:
    """Make a synthetic copy as a role that may only read; return the output."""
    dsn = server.dsn_for(role, database)
    done = pgdyno(
        *("workload", "copy", str(file), "--dsn", dsn, "--synthetic", "--json", *options),
        PGDYNO_HOME=str(home),
    )
    assert done.returncode == 0, done.stderr
    printed: Mapping[str, Any] = json.loads(done.stdout)
    return printed


def restored(server: RealServer, dump: Path, name: str | None = None) -> str:
    """Restore a dump to a new database; return its name. Nothing in the dump may fail."""
    database = name or f"{dump.stem}_copy"
    server.execute(f"DROP DATABASE IF EXISTS {database}")
    server.execute(f"CREATE DATABASE {database}")
    way = server.dsn_for("postgres", database)
    done = subprocess.run(
        [server.bin_directory / "pg_restore", "--no-owner", "--exit-on-error", "--dbname", way, dump],
        capture_output=True, text=True, check=False, env={**os.environ}, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return database


def sample(
    server: RealServer, database: str, file: Path, home: Path, *options: str, role: str = "reader"
) -> Run:
    """Sample a database."""
    return pgdyno(
        *("workload", "copy", str(file), "--dsn", server.dsn_for(role, database)),
        *("--sample", "--json", *options),
        PGDYNO_HOME=str(home),
    )


def sampled(done: Run) -> Mapping[str, Any]:
    """Return the output of a copy that has succeeded."""
    assert done.returncode == 0, done.stderr
    printed: Mapping[str, Any] = json.loads(done.stdout)
    return printed


def bench_briefly(server: RealServer, file: Path, home: Path, *options: str) -> Run:
    """Measure a workload on its copy, in one short block of one client."""
    short = ("--clients", "1", "--blocks", "1", "--block", "300ms")
    return pgdyno(
        *("bench", str(file), "--pg-bin", str(server.bin_directory), *short, *options),
        PGDYNO_HOME=str(home),
        PGDYNO_AS_BOOTED="1",
    )


def rows_of(server: RealServer, database: str) -> dict[str, set[str]]:
    """Return the texts of all rows by table: equal ones of a table count once."""
    found = {}
    for (name,) in server.execute(_TABLES, database):
        # FROM ONLY: rows of tables that inherit are theirs.
        query = f"SELECT t::text FROM ONLY {name} t"  # noqa: S608 — of this test's own
        found[str(name)] = {str(row) for (row,) in server.execute(query, database)}
    return found
