"""Locks of a server that exclude every other pgdyno, from any host, user and home.

They are advisory locks of one session: when pgdyno is killed while a statement runs, its lock is held until
the server has finished that statement. Advisory locks belong to one database; holders in other databases
are found in ``pg_locks``.
"""

from __future__ import annotations

import os
import socket
import time
from dataclasses import dataclass

from pgdyno.journal.session.query import Connection, run, value
from pgdyno.model.errors import LockHeldError, RefusedError

_WAIT_S = 5.0  # a killed client's backend ends within milliseconds, or when its statement is done
_POLL_S = 0.05


@dataclass(frozen=True)
class ServerLock:
    """A lock by its 64-bit key, which shows in pg_locks as classid 0, objid key, objsubid 1."""

    key: int
    refusal: str
    hint: str


CHANGING = ServerLock(
    0x7067_6479,  # "pgdy"
    "another pgdyno is changing this server",
    "wait until it has ended, then see pgdyno status",
)
LOADING = ServerLock(
    0x7067_6C64,  # "pgld"
    "another pgdyno is loading this server",
    "wait until it has ended: each would measure the other's load",
)


def take(connection: Connection, lock: ServerLock) -> None:
    """Take a lock for as long as the session lasts; a killed pgdyno's is waited for.

    Raises: LockHeldError naming the holder; RefusedError behind a connection pooler.
    """
    _require_no_pooler(connection)
    name = f"pgdyno, process {os.getpid()} on {socket.gethostname()}"[:63]  # NAMEDATALEN - 1
    run(connection, "SELECT pg_catalog.set_config('application_name', %s, false)", (name,))
    deadline_s = time.monotonic() + _WAIT_S
    while (holder := _try(connection, lock.key)) is not None:
        if time.monotonic() > deadline_s:
            raise LockHeldError(lock.refusal, detail=f"the lock is held by {holder}", hint=lock.hint)
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


def _try(connection: Connection, key: int) -> str | None:
    """Take the lock, or return its holder in any database."""
    is_ours = value(connection, "SELECT pg_catalog.pg_try_advisory_lock(%s::bigint)", bool, (key,))
    others = run(
        connection,
        "SELECT COALESCE(a.application_name, ''), l.pid FROM pg_catalog.pg_locks l"
        " LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid"
        " WHERE l.locktype = 'advisory' AND l.granted AND l.classid = 0 AND l.objid = %s AND l.objsubid = 1"
        " AND l.pid <> pg_catalog.pg_backend_pid()",
        (key,),
    )
    if is_ours and not others:
        return None
    if is_ours:
        run(connection, "SELECT pg_catalog.pg_advisory_unlock(%s::bigint)", (key,))
    if not others:
        return "a session that has just ended"
    name, pid = others[0]
    return f"{name or 'a session that this role may not see'} (backend {pid})"
