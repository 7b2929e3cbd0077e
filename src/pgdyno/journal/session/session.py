"""Connection that changes a server, and the lock that excludes every other pgdyno.

Whatever a session opens later reaches the server that it began with, or fails: see ``target.bound_to``.

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

from pgdyno.journal.session.query import Connect, Connection, run, value
from pgdyno.journal.session.target import bound_to, read_target
from pgdyno.model.errors import LockHeldError, PgdynoError, RefusedError
from pgdyno.model.plans.journal import Target

_LOCK_KEY = 0x7067_6479  # "pgdy"; one 64-bit key shows in pg_locks as classid 0, objid key, objsubid 1
_WAIT_S = 5.0  # a killed client's backend ends within milliseconds, or when its statement is done
_POLL_S = 0.05


@dataclass
class Session:
    """A connection to a server; from ``locked_session`` it holds the lock.

    ``connect`` opens another connection, to that very server.
    """

    connect: Connect
    connection: Connection
    target: Target

    def reconnect(self) -> None:
        """Connect and lock again, after a restart of the server has ended the session.

        Raises: ConnectionFailedError, also if another server answers: nothing is done on it.
        """
        self.connection.close()
        connection = self.connect()
        try:
            _lock(connection)
        except PgdynoError:
            connection.close()
            raise
        self.connection = connection


@contextmanager
def locked_session(connect: Connect) -> Iterator[Session]:
    """Provide a locked session.

    Raises: LockHeldError naming the holder; ConnectionFailedError.
    """
    with reading_session(connect) as session:
        _lock(session.connection)
        yield session


@contextmanager
def reading_session(connect: Connect) -> Iterator[Session]:
    """Provide a session that takes no lock, for read-only use."""
    connection = connect()
    try:
        target = read_target(connection)
    except PgdynoError:
        connection.close()
        raise
    session = Session(bound_to(target, connect), connection, target)
    try:
        yield session
    finally:
        session.connection.close()


def _lock(connection: Connection) -> None:
    _require_no_pooler(connection)
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


def _require_no_pooler(connection: Connection) -> None:
    """Raise RefusedError for a connection whose server session others may get, and with it the lock.

    A pooler gives its clients process ids of its own.
    """
    pid = value(connection, "SELECT pg_catalog.pg_backend_pid()", int)
    if pid != connection.info.backend_pid:
        raise RefusedError(
            "a connection pooler stands before the server",
            detail=f"the connection has process id {connection.info.backend_pid}, and the server says {pid}: "
            "the lock against other pgdyno processes would belong to a session that others use as well",
            hint="name the server's own address and port, for example --dsn 'host=… port=5432'",
        )


def _try_lock(connection: Connection) -> str | None:
    """Take the lock, or return its holder in any database."""
    is_ours = value(connection, "SELECT pg_catalog.pg_try_advisory_lock(%s::bigint)", bool, (_LOCK_KEY,))
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
