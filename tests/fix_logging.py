"""Servers that log into files, and workloads that are captured from these."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.fix_bank import initialise
from tests.fix_home import pgdyno
from tests.fix_servers import RealServer, wait_until

from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.store.workload_file import read_workload_file

PREFIX = "%m [%p] %q%u@%d app=%a "
SETTINGS = f"""
shared_preload_libraries = 'pg_stat_statements'
logging_collector = on
log_directory = 'log'
log_filename = 'of-%H%M%S'
log_file_mode = 0644
log_line_prefix = '{PREFIX}'
"""
_SUFFIXES = {"csvlog": ".csv", "jsonlog": ".json", "stderr": ""}


def prepare(server: RealServer) -> None:
    """Make the databases, the bank with pgbench's tables."""
    for database in ("bank", "shop"):
        server.execute(f"CREATE DATABASE {database}")
        server.execute("CREATE EXTENSION pg_stat_statements", database)
    initialise(server)
    server.execute("CREATE ROLE app LOGIN IN ROLE pg_read_all_data, pg_write_all_data")


def set_logging(server: RealServer, destination: str, **settings: str) -> list[Path]:
    """Let a server log into new files; return those of before, which have all of the sessions that ended."""
    if destination == "jsonlog" and server.execute("SHOW server_version_num") < [("150000",)]:
        pytest.skip("jsonlog is of PostgreSQL 15 and later")
    before = log_files(server, destination)
    for name, value in {"log_destination": destination, **settings}.items():
        server.execute(f"ALTER SYSTEM SET {name} = '{value}'")
    server.execute("SELECT pg_reload_conf()")
    wait_until(lambda: all(server.execute(f"SHOW {name}") == [(value,)] for name, value in settings.items()))
    mark = f"mark {time.monotonic_ns()}"
    wait_until(lambda: _is_in_new_file(server, destination, before, mark))
    return before


def _is_in_new_file(server: RealServer, destination: str, before: list[Path], mark: str) -> bool:
    """Log a mark, and return whether a new file has one. What sessions had logged before it is then written.

    Files are named after seconds: a new one may have to be asked for again.
    """
    server.execute("SELECT pg_rotate_logfile()")
    server.execute(f"DO $$ BEGIN RAISE LOG '{mark}'; END $$")
    new = [path for path in log_files(server, destination) if path not in before]
    return any(mark in path.read_text(errors="replace") for path in new)


def log_files(server: RealServer, destination: str) -> list[Path]:
    """Return the files that a server logs into."""
    found = (server.data_directory / "log").iterdir()
    return sorted(path for path in found if path.suffix == _SUFFIXES[destination])


def capture(
    server: RealServer, database: str, file: Path, logs: list[Path], *options: str
) -> CapturedWorkload:
    """Capture the workload that logs have, and read its file."""
    named = [argument for log in logs for argument in ("--log", str(log))]
    dsn = server.reading_dsn(database)
    done = pgdyno("workload", "capture", "--dsn", dsn, *named, *options, str(file))
    assert done.returncode == 0, done.stderr
    return read_workload_file(file)
