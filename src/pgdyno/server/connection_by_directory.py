"""Control connections to whatever server runs on a data directory at the moment."""

from __future__ import annotations

from pathlib import Path

from pgdyno.model.errors import ConnectionFailedError
from pgdyno.model.facts import Unknown
from pgdyno.server.connection import Connection, connect, postmaster_dsn
from pgdyno.server.data_directory import read_data_directory


def connect_by_directory(path: Path, *, is_read_only: bool = True) -> Connection:
    """Connect to the server of a data directory, where its postmaster.pid says that it listens.

    Raises: DataDirectoryError, PrivilegeError; ConnectionFailedError, also if it does not run.
    """
    try:
        directory = read_data_directory(path.absolute())
    except FileNotFoundError as error:  # the pid file goes at this very moment
        raise _not_running(path, f"{error.filename} is gone") from error
    if isinstance(directory.postmaster.value, Unknown):
        raise _not_running(path, directory.postmaster.value.reason)
    dsn = postmaster_dsn(directory.postmaster.value, owner=directory.owner)
    return connect(dsn, is_read_only=is_read_only)


def _not_running(path: Path, reason: str) -> ConnectionFailedError:
    return ConnectionFailedError(
        f'the server of data directory "{path}" takes no connections',
        detail=reason,
        hint="start it, or name its running server with --dsn",
    )
