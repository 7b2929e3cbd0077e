"""Connection for changing a server, and the lock that excludes every other pgdyno.

Later connections of a session reach the same server, or fail: see ``target.bound_to``.

The session that makes the changes holds the lock: after a kill it is held until the server has finished the
statement, so a change can never take effect after the revert that undoes it.

Locks are session-level advisory locks, which exclude every other pgdyno, from any host, user and home. They
are per database; holders in other databases are found in ``pg_locks``. Every role may take any advisory lock.
So each pgdyno takes a lock with a random second number, which nobody can take in advance, and another holder
of the same first number counts only if its role has the privilege that the lock protects. If two start at the
same time, both see each other, and both try again.
"""

from __future__ import annotations

import os
import random
import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import LiteralString

from pgdyno.apply.session.query import Connect, Connection, run, value
from pgdyno.apply.session.target import bound_to, read_target
from pgdyno.base.errors import LockHeldError, PgdynoError
from pgdyno.model.plans.journal import Target
from pgdyno.postgres.checked_results import checked_results


@dataclass
class Session:
    """A connection to a server; from ``locked_session`` it holds the lock.

    ``connect`` opens another connection to the same server.
    """

    connect: Connect
    connection: Connection
    target: Target

    def reconnect(self) -> None:
        """Connect and lock again, after a restart of the server.

        Raises: ConnectionFailedError, also if a different server answers: nothing is done on it.
        """
        self.connection.close()
        connection = self.connect()
        try:
            take(connection, CHANGING)
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
        take(session.connection, CHANGING)
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


_WAIT_S = 5.0  # a killed client's backend exits within milliseconds, or when its statement is done
_POLL_S = 0.05, 0.15  # a random value between these, so that two do not retry in lockstep
_NUMBERS = 1 << 31  # non-negative int4 values

_LOCK: LiteralString = "SELECT pg_catalog.pg_try_advisory_lock(%s::pg_catalog.int4, %s::pg_catalog.int4)"
_UNLOCK: LiteralString = "SELECT pg_catalog.pg_advisory_unlock(%s::pg_catalog.int4, %s::pg_catalog.int4)"
_MAY_ALTER_SYSTEM: LiteralString = """EXISTS (
    SELECT FROM pg_catalog.pg_parameter_acl p, pg_catalog.aclexplode(p.paracl) g
    WHERE g.privilege_type OPERATOR(pg_catalog.=) 'ALTER SYSTEM'
      AND g.grantee OPERATOR(pg_catalog.=) ANY (ARRAY[0::pg_catalog.oid, r.oid]))"""
_HOLDERS: LiteralString = """
SELECT COALESCE(a.application_name, ''), a.usename::pg_catalog.text, a.pid
FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a ON a.pid OPERATOR(pg_catalog.=) l.pid
WHERE l.locktype OPERATOR(pg_catalog.=) 'advisory' AND l.granted
AND l.classid OPERATOR(pg_catalog.=) %s AND l.objsubid OPERATOR(pg_catalog.=) 2
AND l.pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()
AND (a.usename OPERATOR(pg_catalog.=) session_user OR EXISTS (
    SELECT FROM pg_catalog.pg_roles r
    WHERE pg_catalog.pg_has_role(a.usesysid, r.oid, 'MEMBER') AND (r.rolsuper OR """


@dataclass(frozen=True)
class ServerLock:
    """A lock, by its first number: classid in pg_locks, with objsubid 2.

    ``right``: an SQL condition for a role ``r`` without superuser that has the privilege which the lock
    protects, from server version ``right_since`` on.
    """

    key: int
    right: LiteralString
    right_since: int
    refusal: str
    hint: str


@dataclass(frozen=True)
class _Holder:
    """A session that holds the lock. ``pid`` None: unknown."""

    name: str
    pid: int | None = None


CHANGING = ServerLock(
    0x7067_6479,  # "pgdy"
    _MAY_ALTER_SYSTEM,
    150_000,
    "another pgdyno is changing this server",
    "wait until it has ended, then see pgdyno status",
)
LOADING = ServerLock(
    0x7067_6C64,  # "pgld"
    "r.rolcreatedb",
    0,
    "another pgdyno is loading this server",
    "wait until it has ended, because each would measure the other's load",
)


def take(connection: Connection, lock: ServerLock) -> None:
    """Take a lock until the session ends; wait up to ``_WAIT_S`` for a killed pgdyno's lock.

    Raises: LockHeldError naming the holder.
    """
    name = f"pgdyno, process {os.getpid()} on {socket.gethostname()}"[:63]  # NAMEDATALEN - 1
    run(connection, "SELECT pg_catalog.set_config('application_name', %s, false)", (name,))
    deadline_s = time.monotonic() + _WAIT_S
    while (holder := _try(connection, lock)) is not None:
        if time.monotonic() > deadline_s:
            raise _refusal(lock, holder)
        time.sleep(random.uniform(*_POLL_S))  # noqa: S311 — not a secret


def _refusal(lock: ServerLock, holder: _Holder) -> LockHeldError:
    hint = lock.hint
    if holder.pid is not None:
        hint += f"; if it is not pgdyno, terminate it: SELECT pg_terminate_backend({holder.pid})"
    return LockHeldError(lock.refusal, detail=f"the lock is held by {holder.name}", hint=hint)


def _try(connection: Connection, lock: ServerLock) -> _Holder | None:
    """Take the lock, or return its holder in any database."""
    numbers = lock.key, secrets.randbelow(_NUMBERS)
    is_ours = value(connection, _LOCK, bool, numbers)
    holder = _other_holder(connection, lock)
    if is_ours and holder is None:
        return None
    if is_ours:
        run(connection, _UNLOCK, numbers)
    return holder or _Holder("a session with the same random number")


@checked_results()
def _other_holder(connection: Connection, lock: ServerLock) -> _Holder | None:
    right = lock.right if connection.info.server_version >= lock.right_since else "false"
    others = run(connection, _HOLDERS + right + ")))", (lock.key,))
    if not others:
        return None
    name, role, pid = others[0]
    return _Holder(f"{name or 'an unnamed session'} of role {role} (backend {pid})", pid)
