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
"""Parameters of libpq: no password of a file's, and that of the environment only by a proof of it.

libpq warns of a password file that is no plain one, but not of one that cannot be.
"""


def connect_by_directory(path: Path, *, database: str | None = None, by: Connect = connect) -> Connection:
    """Connect to the server of a data directory, where its postmaster.pid says that it listens.

    Raises: DataDirectoryError, PrivilegeError; ConnectionFailedError, also if it does not run.
    """
    try:
        directory = read_data_directory(path.absolute())
        postmaster, owner = directory.postmaster.value, directory.owner
        if isinstance(postmaster, Unknown):
            raise _not_running(path, postmaster.reason)
        return connect_as_owner(path, postmaster, owner, database=database, by=by)
    except FileNotFoundError as error:  # the pid file goes at this very moment
        raise _not_running(path, f"{error.filename} is gone") from error


def connect_as_owner(
    path: Path, postmaster: Postmaster, owner: str, *, database: str | None = None, by: Connect = connect
) -> Connection:
    """Connect to a data directory's postmaster as its owner, unless the environment names another role.

    Distributions let nobody else in over the socket (``peer``), not even root: who is root acts as the owner
    for that moment, and as himself if that fails. The owner may have somebody else listen there: root shows
    no password. Raises: ConnectionFailedError.
    """
    dsn = postmaster_dsn(postmaster, owner=owner, database=database)
    uid = path.stat().st_uid
    if not os.geteuid() == 0 != uid:
        return by(dsn)
    dsn = make_conninfo(dsn, **_NO_PASSWORDS)
    if "PGUSER" not in os.environ:
        try:
            with acting_as(uid):  # the kernel says who is at the other end: unix(7), SO_PEERCRED
                return by(dsn)
        except ConnectionFailedError:
            pass  # root himself is tried next; that attempt says why it fails
    try:
        return by(dsn)
    except ConnectionFailedError as error:
        if "PGPASSWORD" in (error.hint or ""):
            error.hint = "set PGPASSWORD; files of passwords are read where --dsn names the server"
        raise


def _not_running(path: Path, reason: str) -> ConnectionFailedError:
    return ConnectionFailedError(
        f'the server of data directory "{path}" takes no connections',
        detail=reason,
        hint="start it, or name its running server with --dsn",
    )
