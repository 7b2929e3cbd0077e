"""Databases that pgdyno creates on a user's server for load, and drops again.

Only databases with a record in this workspace are ever dropped, and only by a session that holds the
server's lock. The same session creates them: after a kill, the lock becomes free only when the server has
completed or aborted the running command, so no database can appear later.

A record is written before a database is created. It is an empty file, ``SERVER/DATABASE``, in the workspace:
the server's system identifier and the database's name, which ends with random digits. A database without a
record was not created from this workspace.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psycopg
from psycopg import sql

from pgdyno.base.errors import PgdynoError, ServerError
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection, connect_to_change
from pgdyno.postgres.connection.control_connection import ControlConnection

MARK = "made by pgdyno for measuring; may be dropped"
_SUFFIX_BYTES = 8  # random: no existing database has the name, and it cannot be guessed
_IDENTIFIER = "SELECT system_identifier FROM pg_catalog.pg_control_system()"
_THERE = """
SELECT d.datname, pg_catalog.shobj_description(d.oid, 'pg_database') FROM pg_catalog.pg_database d
WHERE d.datname OPERATOR(pg_catalog.=) ANY (%s::pg_catalog.name[])
"""
_HAS_PREWARM = """
SELECT 1 FROM pg_catalog.pg_available_extensions
WHERE name OPERATOR(pg_catalog.=) 'pg_prewarm'
  AND pg_catalog.current_setting('is_superuser')::pg_catalog.bool
"""
_NAME = re.compile(r"pgdyno_[a-z0-9_]{1,55}")


@dataclass(frozen=True)
class DatabaseRecords:
    """The records of one server."""

    directory: Path

    def add(self, name: str) -> None:
        """Record a database before its creation; the record is flushed and survives a power loss."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.directory / name).touch(exist_ok=False)
        for path in (self.directory, self.directory.parent, self.directory.parent.parent):
            _flush(path)

    def names(self) -> list[str]:
        """Return the names of all recorded databases: created, or about to be, and not yet dropped."""
        if not self.directory.is_dir():
            return []
        return sorted(path.name for path in self.directory.iterdir() if _NAME.fullmatch(path.name))

    def remove(self, name: str) -> None:
        """Remove the record of a database that no longer exists."""
        (self.directory / name).unlink(missing_ok=True)


@dataclass
class WorkloadDatabases:
    """Workload databases of one run, on the server behind a connection string.

    ``records`` is the workspace's directory of records; ``lock`` acquires the server's lock in a session.
    """

    dsn: str
    records: Path
    lock: Callable[[Connection], None]
    _suffix: str = field(default_factory=partial(secrets.token_hex, _SUFFIX_BYTES), init=False)
    _session: ControlConnection | None = field(default=None, init=False)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the server's lock in the block, and first drop leftover databases of killed runs.

        Raises: LockHeldError if another pgdyno loads this server; ConnectionFailedError, ServerError.
        """
        try:
            self.drop_all()
            yield
        finally:
            if self._session is not None:
                self._session.close()

    def hold(self) -> None:
        """Acquire the lock, again if a server restart has ended the session.

        Raises: LockHeldError if another pgdyno holds it; ConnectionFailedError.
        """
        if self._session is None or not _answers(self._session):
            self._session = self._locked_session()

    def name(self, label: str) -> str:
        """Return the name of this run's database with a label."""
        return f"pgdyno_{label}_{self._suffix}"

    def create(self, label: str) -> str:
        """Create an empty database and return its name. Raises: ServerError."""
        return self._make(label, "template0")

    def copy(self, template: str, label: str) -> None:
        """Create a database as a copy of another; an earlier copy is replaced. Raises: ServerError."""
        with self._locked() as (connection, records):
            if self.name(label) in _there(connection, records):
                self._drop(connection, records, self.name(label))
        self._make(label, template)

    def finish_load(self, name: str) -> None:
        """Vacuum and analyse a loaded database; create pg_prewarm if the role may. Raises: ServerError."""
        with self._connect(name) as connection, _prepared(connection):
            if connection.execute(_HAS_PREWARM).fetchone():
                connection.execute("CREATE EXTENSION IF NOT EXISTS pg_prewarm SCHEMA public")
            with connection.waiting_for_hours(partial(self._connect, name)):
                connection.execute("VACUUM (FREEZE, ANALYZE)")

    def there(self) -> set[str]:
        """Return the names of recorded databases that exist on the server and still have pgdyno's comment."""
        with self._locked() as (connection, records):
            return _there(connection, records)

    def drop_all(self) -> None:
        """Drop every recorded database, including leftovers of a killed pgdyno. Raises: ServerError."""
        with self._locked() as (connection, records):
            there = _there(connection, records)
            for name in records.names():
                if name in there:
                    self._drop(connection, records, name)
                records.remove(name)

    def _make(self, label: str, template: str) -> str:
        """Create a database that accepts no connections until PUBLIC's rights to it are revoked."""
        name = self.name(label)
        database = sql.Identifier(name)
        make = sql.SQL("CREATE DATABASE {} TEMPLATE {} ALLOW_CONNECTIONS false")
        with self._locked() as (connection, records):
            records.add(name)
            with connection.waiting_for_hours(self._connect):
                connection.execute(make.format(database, sql.Identifier(template)))
            with connection.transaction():
                connection.execute(
                    sql.SQL("COMMENT ON DATABASE {} IS {}").format(database, sql.Literal(MARK))
                )
                connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database))
                connection.execute(sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(database))
        return name

    def _drop(self, connection: ControlConnection, records: DatabaseRecords, name: str) -> None:
        with connection.waiting_for_hours(self._connect):
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))
        records.remove(name)

    @contextmanager
    def _locked(self) -> Iterator[tuple[ControlConnection, DatabaseRecords]]:
        """Provide the session that holds the lock, and its server's records."""
        self.hold()
        assert self._session is not None  # noqa: S101 — it is held
        with _prepared(self._session):
            yield self._session, DatabaseRecords(self.records / str(_identifier(self._session)))

    def _locked_session(self) -> ControlConnection:
        connection = self._connect()
        try:
            self.lock(connection)
            connection.execute("SET idle_session_timeout = 0")  # the session holds the lock while it is idle
        except (PgdynoError, psycopg.Error):
            connection.close()
            raise
        return connection

    def _connect(self, database: str | None = None) -> ControlConnection:
        return connect_to_change(self.dsn, database=database)


def _there(connection: Connection, records: DatabaseRecords) -> set[str]:
    rows = connection.execute(_THERE, (records.names(),)).fetchall()
    # No comment: pgdyno was killed before it set one. A different comment: a user has adopted the database.
    return {name for name, comment in rows if comment in {None, MARK}}


@checked_results()
def _identifier(connection: Connection) -> int:
    """Return the cluster's system identifier. It must be an integer, because it becomes a directory name.

    Raises: ServerError.
    """
    identifier = connection.execute(_IDENTIFIER).fetchall()[0][0]
    if not isinstance(identifier, int) or abs(identifier) >= 1 << 64:
        raise TypeError(f"invalid system_identifier {identifier!r}")
    return identifier


def _answers(connection: Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except psycopg.Error:
        connection.close()
        return False
    return True


@contextmanager
def _prepared(connection: ControlConnection) -> Iterator[None]:
    """Remove the session's timeouts, and convert the server's errors. Raises: ServerError."""
    try:
        connection.execute("SET statement_timeout = 0; SET lock_timeout = 0")
        yield
    except psycopg.Error as error:
        raise ServerError(
            "could not prepare the server for load",
            detail=str(error).strip(),
            hint="loading requires a role with CREATEDB",
        ) from error


def _flush(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
