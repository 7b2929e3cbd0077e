"""Scans are run with the plans that they are named after, with and without knowing the parameters."""

from __future__ import annotations

import subprocess
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from tests.fix_servers import RealServer, wait_until

from pgdyno.workload.bundled import load

pytestmark = pytest.mark.server

DATABASE = "scans"
ROWS = load()["scan-bitmap-cached"].data_set.scale * 1000
COUNT = 20  # from the sixth execution on, the server may choose a plan for unknown parameters

# idx_tup_fetch counts rows of plain index scans alone: bitmap scans fetch rows by themselves.
COUNTERS = """
SELECT t.seq_scan, t.seq_tup_read, i.indexrelname, i.idx_scan, i.idx_tup_read, i.idx_tup_fetch
FROM pg_stat_user_tables t LEFT JOIN pg_stat_user_indexes i ON i.relid = t.relid AND i.idx_scan > 0
"""
OTHERS = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()
"""


@dataclass(frozen=True)
class Scanned:
    """What the server has counted."""

    seq_scan: int
    seq_tup_read: int
    index: str | None
    idx_scan: int | None
    idx_tup_read: int | None
    idx_tup_fetch: int | None


@pytest.fixture(scope="module")
def server(pg18: RealServer) -> Iterator[RealServer]:
    with psycopg.connect(pg18.dsn, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {DATABASE}")
        drive(pg18, "load", "scan-bitmap")
        yield pg18
        connection.execute(f"DROP DATABASE {DATABASE} WITH (FORCE)")


def drive(server: RealServer, command: str, workload: str, *arguments: str) -> None:
    program = Path(sysconfig.get_path("scripts")) / "pgdyno-driver"
    options = ("--option=tables=1", f"--option=table_size={ROWS}")
    target = server.dsn_for("postgres", DATABASE)
    subprocess.run([program, command, workload, target, *options, *arguments], check=True, timeout=250)


def scan(server: RealServer, workload: str) -> Scanned:
    """Run a workload ``COUNT`` times and return what the server has counted."""
    with psycopg.connect(server.dsn_for("postgres", DATABASE), autocommit=True) as connection:
        wait_until(lambda: connection.execute(OTHERS).fetchone() == (0,))  # whoever ends later tells later
        connection.execute("SELECT pg_stat_reset()")
        drive(server, "run", workload, f"--count={COUNT}")
        wait_until(lambda: connection.execute(OTHERS).fetchone() == (0,))
        (row,) = connection.execute(COUNTERS).fetchall()
        return Scanned(*row)


def test_a_sequential_scan_reads_the_whole_table(server: RealServer) -> None:
    assert scan(server, "scan-sequential") == Scanned(COUNT, COUNT * ROWS, None, None, None, None)


def test_a_bitmap_scan_fetches_scattered_rows_by_the_index_of_k(server: RealServer) -> None:
    found = scan(server, "scan-bitmap")
    assert (found.seq_scan, found.index, found.idx_tup_fetch) == (0, "k_1", 0)
    assert found.idx_tup_read == pytest.approx(COUNT * ROWS / 200, rel=0.2)


def test_an_index_scan_fetches_the_rows_of_a_range_of_keys(server: RealServer) -> None:
    rows = COUNT * ROWS // 20
    assert scan(server, "scan-index") == Scanned(0, 0, "sbtest1_pkey", COUNT, rows, rows)
