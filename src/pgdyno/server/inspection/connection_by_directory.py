"""Control connections to the server that currently runs on a data directory."""

from __future__ import annotations

import os
from pathlib import Path

from pgdyno.model.errors import ConnectionFailedError
from pgdyno.model.facts import Unknown
from pgdyno.model.servers.server import Postmaster
from pgdyno.server.connection.connection import Connection, connect, postmaster_dsn
from pgdyno.server.inspection.data_directory import read_data_directory
from pgdyno.server.process.account import acting_as


def connect_by_directory(path: Path, *, is_read_only: bool = True, database: str | None = None) -> Connection:
    """Connect to the server of a data directory, where its postmaster.pid says that it listens.

    Raises: DataDirectoryError, PrivilegeError; ConnectionFailedError, also if it does not run.
    """
    try:
        directory = read_data_directory(path.absolute())
        postmaster, owner = directory.postmaster.value, directory.owner
        if isinstance(postmaster, Unknown):
            raise _not_running(path, postmaster.reason)
        return connect_as_owner(path, postmaster, owner, is_read_only=is_read_only, database=database)
    except FileNotFoundError as error:  # the pid file goes at this very moment
        raise _not_running(path, f"{error.filename} is gone") from error


def connect_as_owner(
    path: Path, postmaster: Postmaster, owner: str, *, is_read_only: bool = True, database: str | None = None
) -> Connection:
    """Connect to a data directory's postmaster as its owner, unless the environment names another role.

    Distributions let nobody else in over the socket (``peer``), not even root: who is root acts as the owner
    for that moment, and as himself if that fails. Raises: ConnectionFailedError.
    """
    dsn = postmaster_dsn(postmaster, owner=owner, database=database)
    uid = path.stat().st_uid
    if os.geteuid() == 0 != uid and "PGUSER" not in os.environ:
        try:
            with acting_as(uid):  # the kernel says who is at the other end: unix(7), SO_PEERCRED
                return connect(dsn, is_read_only=is_read_only)
        except ConnectionFailedError:
            pass  # whoever root has a password for is tried next; that attempt says why it fails
    return connect(dsn, is_read_only=is_read_only)


def _not_running(path: Path, reason: str) -> ConnectionFailedError:
    return ConnectionFailedError(
        f'the server of data directory "{path}" takes no connections',
        detail=reason,
        hint="start it, or name its running server with --dsn",
    )
