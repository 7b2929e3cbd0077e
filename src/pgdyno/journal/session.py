"""The connection that changes a server, and the lock that keeps every other pgdyno from it meanwhile.

The lock is an advisory lock of this very session: when pgdyno is killed while a statement runs, it is held
until the server has finished that statement, so that a revert can never be overtaken by the change that it
undoes. Advisory locks belong to one database; holders in other databases are found in ``pg_locks``.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pgdyno.journal.query import Connect, Connection, run
from pgdyno.model.errors import LockHeldError, PgdynoError

_LOCK_KEY = 0x7067_6479  # "pgdy"; one 64-bit key shows in pg_locks as classid 0, objid key, objsubid 1
_WAIT_S = 5.0  # a killed client's backend ends within milliseconds, or when its statement is done
_POLL_S = 0.05


@dataclass
class Session:
    """A connection to a server; from ``locked_session`` it holds the lock."""

    connect: Connect
    connection: Connection

    def reconnect(self) -> None:
        """Connect and lock again, after a restart of the server has ended the session."""
        self.connection.close()
        self.connection = _locked(self.connect)


@contextmanager
def locked_session(connect: Connect) -> Iterator[Session]:
    """Provide a locked session.

    Raises: LockHeldError naming the holder; ConnectionFailedError.
    """
    session = Session(connect, _locked(connect))
    try:
        yield session
    finally:
        session.connection.close()


@contextmanager
def reading_session(connect: Connect) -> Iterator[Session]:
    """Provide a session that takes no lock, for whoever only looks."""
    session = Session(connect, connect())
    try:
        yield session
    finally:
        session.connection.close()


def _locked(connect: Connect) -> Connection:
    connection = connect()
    try:
        _lock(connection)
    except PgdynoError:
        connection.close()
        raise
    return connection


def _lock(connection: Connection) -> None:
    name = f"pgdyno, process {os.getpid()} on {socket.gethostname()}"[:63]  # NAMEDATALEN - 1
    run(connection, "SELECT pg_catalog.set_config('application_name', %s, false)", (name,))
    deadline_s = time.monotonic() + _WAIT_S
    while (holder := _try_lock(connection)) is not None:
        if time.monotonic() > deadline_s:
            raise LockHeldError(
                "another pgdyno is changing this server",
                detail=f"the lock is held by {holder}",
                hint="wait until it has ended, then see pgdyno status",
            )
        time.sleep(_POLL_S)


def _try_lock(connection: Connection) -> str | None:
    """Take the lock, or return who has it in whatever database."""
    is_ours = run(connection, "SELECT pg_catalog.pg_try_advisory_lock(%s::bigint)", (_LOCK_KEY,))[0][0]
    others = run(
        connection,
        "SELECT COALESCE(a.application_name, ''), l.pid FROM pg_catalog.pg_locks l"
        " LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid"
        " WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 0 AND l.objid = %s AND l.objsubid = 1"
        " AND l.pid <> pg_catalog.pg_backend_pid()",
        (_LOCK_KEY,),
    )
    if is_ours and not others:
        return None
    if is_ours:
        run(connection, "SELECT pg_catalog.pg_advisory_unlock(%s::bigint)", (_LOCK_KEY,))
    if not others:
        return "a session that has just ended"
    name, pid = others[0]
    return f"{name or 'a session that this role may not see'} (backend {pid})"
