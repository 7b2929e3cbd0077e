"""Locks of a server that exclude every other pgdyno, from any host, user and home.

They are advisory locks of one session: when pgdyno is killed while a statement runs, its lock is held until
the server has finished that statement. Advisory locks belong to one database; holders in other databases
are found in ``pg_locks``.

Every role may take any advisory lock. So each pgdyno holds one of its own, whose second number is random and
cannot be taken in advance, and who else holds one of the same first number counts only if its role may do
what the lock is about. Two that begin at the same time see each other, and both try again.
"""

from __future__ import annotations

import os
import random
import secrets
import socket
import time
from dataclasses import dataclass
from typing import LiteralString

from pgdyno.apply.session.query import Connection, run, value
from pgdyno.base.errors import LockHeldError
from pgdyno.postgres.answers import answers_of_postgresql

_WAIT_S = 5.0  # a killed client's backend ends within milliseconds, or when its statement is done
_POLL_S = 0.05, 0.15  # between these: two that always tried at the same time would both give up
_NUMBERS = 1 << 31  # of an integer that is not negative

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
    """A lock by its first number, which shows in pg_locks as classid, with objsubid 2.

    ``right`` is a condition of SQL: whether a role ``r`` that is no superuser may do what the lock is about,
    from the server's version ``right_since`` on.
    """

    key: int
    right: LiteralString
    right_since: int
    refusal: str
    hint: str


@dataclass(frozen=True)
class _Holder:
    """A session that holds the lock. ``pid`` None: it is not known."""

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
    "wait until it has ended: each would measure the other's load",
)


def take(connection: Connection, lock: ServerLock) -> None:
    """Take a lock for as long as the session lasts; a killed pgdyno's is waited for.

    Raises: LockHeldError naming the holder.
    """
    name = f"pgdyno, process {os.getpid()} on {socket.gethostname()}"[:63]  # NAMEDATALEN - 1
    run(connection, "SELECT pg_catalog.set_config('application_name', %s, false)", (name,))
    deadline_s = time.monotonic() + _WAIT_S
    while (holder := _try(connection, lock)) is not None:
        if time.monotonic() > deadline_s:
            raise _refusal(lock, holder)
        time.sleep(random.uniform(*_POLL_S))  # noqa: S311 — no secret


def _refusal(lock: ServerLock, holder: _Holder) -> LockHeldError:
    hint = lock.hint
    if holder.pid is not None:
        hint += f"; if it is no pgdyno, end it: SELECT pg_terminate_backend({holder.pid})"
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
    return holder or _Holder("a session that has taken the same random number")


@answers_of_postgresql()
def _other_holder(connection: Connection, lock: ServerLock) -> _Holder | None:
    right = lock.right if connection.info.server_version >= lock.right_since else "false"
    others = run(connection, _HOLDERS + right + ")))", (lock.key,))
    if not others:
        return None
    name, role, pid = others[0]
    return _Holder(f"{name or 'a session without a name'} of role {role} (backend {pid})", pid)
