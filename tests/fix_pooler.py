"""A real PgBouncer before a real server, with an application that uses it throughout a test."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.fix_servers import RealServer, as_unprivileged, free_port, owned_directory, wait_until

_CONFIGURATION = """
[databases]
* = host={server.socket_directory} port={server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = {mode}
default_pool_size = {sessions}
server_idle_timeout = 3600
pidfile = {directory}/pid
"""
_STATE = """
SELECT name, setting FROM pg_catalog.pg_settings WHERE source = 'session'
UNION ALL SELECT 'prepared', name FROM pg_catalog.pg_prepared_statements
UNION ALL SELECT 'lock', objid::text FROM pg_catalog.pg_locks
WHERE locktype = 'advisory' AND pid = pg_catalog.pg_backend_pid()
"""
_PAUSE_S = 0.002


@dataclass(frozen=True)
class Pooler:
    """A PgBouncer; all clients of a role share its sessions, of which there is one by default."""

    port: int

    def dsn_for(self, user: str, database: str) -> str:
        """Return a DSN of the pooler."""
        return f"host=127.0.0.1 port={self.port} user={user} dbname={database}"


@contextmanager
def running_pooler(server: RealServer, mode: str, sessions: int = 1) -> Iterator[Pooler]:
    """Start a PgBouncer before a server, as the user that the server runs as."""
    program = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("PgBouncer is not installed: apt install pgbouncer")
    directory = owned_directory(Path(tempfile.gettempdir()), "pgdyno-pooler-")
    try:
        users, port = directory / "users", free_port()
        roles = server.execute("SELECT rolname FROM pg_roles")
        users.write_text("".join(f'"{name}" ""\n' for (name,) in roles))
        file = directory / "pgbouncer.ini"
        file.write_text(
            _CONFIGURATION.format(
                server=server, port=port, users=users, mode=mode, sessions=sessions, directory=directory
            )
        )
        with (directory / "log").open("wb") as log:
            process = subprocess.Popen(
                [*as_unprivileged(), "--pdeathsig", "KILL", program, str(file)], stdout=log, stderr=log
            )
        try:
            wait_until(lambda: _listens(port))
            yield Pooler(port)
        finally:
            process.kill()
            process.wait()
    finally:
        shutil.rmtree(directory)


def _listens(port: int) -> bool:
    with suppress(psycopg.OperationalError):
        psycopg.connect(f"host=127.0.0.1 port={port} user=postgres dbname=postgres").close()
        return True
    return False


@dataclass
class Application:
    """A client that reads and writes its table by its name alone, again and again, on one connection."""

    dsn: str
    statements: int = 0
    errors: list[str] = field(default_factory=list)
    states: set[tuple[Any, ...]] = field(default_factory=set)
    _is_over: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Work during the block, and at least once after it."""
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        wait_until(lambda: self.statements > 0 or bool(self.errors))
        try:
            yield
        finally:
            done = self.statements
            wait_until(lambda: self.statements > done or bool(self.errors))
            self._is_over.set()
            thread.join(60)

    def _run(self) -> None:
        try:
            with psycopg.connect(self.dsn, autocommit=True, prepare_threshold=None) as connection:
                while not self._is_over.is_set():
                    connection.execute("UPDATE people SET name = name || 'x' WHERE id = 1")
                    assert connection.execute("SELECT count(*) FROM people").fetchone() == (10,)
                    self.states.add(tuple(sorted(connection.execute(_STATE).fetchall())))
                    self.statements += 1
                    time.sleep(_PAUSE_S)
        except (psycopg.Error, AssertionError) as error:
            self.errors.append(str(error))
