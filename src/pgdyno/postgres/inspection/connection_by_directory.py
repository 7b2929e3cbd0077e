"""Control connections to the server that currently runs on a data directory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from psycopg.conninfo import make_conninfo

from pgdyno.base.errors import ConnectionFailedError
from pgdyno.base.facts import Unknown
from pgdyno.postgres.connection.connection import Connection, connect, postmaster_dsn
from pgdyno.postgres.inspection.data_directory import read_data_directory
from pgdyno.postgres.process.account import acting_as
from pgdyno.postgres.server import Postmaster

Connect: TypeAlias = Callable[[str], Connection]
_NO_PASSWORDS = {"passfile": "/dev/null/none", "require_auth": "none,scram-sha-256"}
"""libpq parameters: no password file, and the environment's password only with SCRAM, never sent itself.

libpq warns about a password file that is not a plain file, but not about a missing one.
"""


def connect_by_directory(path: Path, *, database: str | None = None, by: Connect = connect) -> Connection:
    """Connect to the server of a data directory, at the address in its postmaster.pid.

    Raises: DataDirectoryError, PrivilegeError; ConnectionFailedError, also if the server does not run.
    """
    try:
        directory = read_data_directory(path.absolute())
        postmaster, owner = directory.postmaster.value, directory.owner
        if isinstance(postmaster, Unknown):
            raise _not_running(path, postmaster.reason)
        return connect_as_owner(path, postmaster, owner, database=database, by=by)
    except FileNotFoundError as error:  # the pid file was just removed
        raise _not_running(path, f"{error.filename} is gone") from error


def connect_as_owner(
    path: Path, postmaster: Postmaster, owner: str, *, database: str | None = None, by: Connect = connect
) -> Connection:
    """Connect to a data directory's postmaster as its owner, unless the environment names another role.

    Distributions allow only the owner over the socket (``peer``), not even root. So root first connects with
    the owner's user id, and then as root if that fails. The listening process may be under the owner's
    control, so root reveals no password. Raises: ConnectionFailedError.
    """
    dsn = postmaster_dsn(postmaster, owner=owner, database=database)
    uid = path.stat().st_uid
    if not os.geteuid() == 0 != uid:
        return by(dsn)
    dsn = make_conninfo(dsn, **_NO_PASSWORDS)
    if "PGUSER" not in os.environ:
        try:
            with acting_as(uid):  # the server gets the client's user id from the kernel: unix(7), SO_PEERCRED
                return by(dsn)
        except ConnectionFailedError:
            pass  # root is tried next; that attempt's error is reported
    try:
        return by(dsn)
    except ConnectionFailedError as error:
        if "PGPASSWORD" in (error.hint or ""):
            error.hint = "set PGPASSWORD, or use --dsn: only then are password files read"
        raise


def _not_running(path: Path, reason: str) -> ConnectionFailedError:
    return ConnectionFailedError(
        f'the server of data directory "{path}" does not accept connections',
        detail=reason,
        hint="start it, or name its running server with --dsn",
    )
