"""Access to a server for changes, and the directory of its journal."""

from __future__ import annotations

import shlex
from pathlib import Path

from pgdyno.apply.runs.host_run import host_writers
from pgdyno.apply.session.access import ServerAccess
from pgdyno.apply.session.query import Connect
from pgdyno.apply.session.restart import CommandRestarter, command_restarter
from pgdyno.base.errors import UsageError
from pgdyno.builds.switching.interchange import InterchangeCheck
from pgdyno.postgres.connection.connection import (
    Connection,
    addresses,
    connect,
    connect_to_change,
    without_password,
)
from pgdyno.postgres.inspection.connection_by_directory import connect_by_directory
from pgdyno.postgres.inspection.inspection import inspect_server
from pgdyno.postgres.process.local_machine import workspace


def server_access(
    dsn: str | None, restart_command: str | None = None, data_directory: Path | None = None
) -> ServerAccess:
    """Return the access to a server and to the journal for its changes.

    Without a DSN, connections go to the server that runs in the data directory.
    Raises: UsageError if the restart command cannot be split into words, or the DSN is invalid.
    """

    def open_connection() -> Connection:
        if dsn is None and data_directory is not None:
            return connect_by_directory(data_directory, by=connect_to_change)
        return connect_to_change(dsn)

    def look(database: str | None = None) -> Connection:
        if dsn is None and data_directory is not None:
            return connect_by_directory(data_directory, database=database)
        return connect(dsn, database=database)

    words = ["pgdyno", "revert"]
    words += [] if dsn is None else ["--dsn", without_password(dsn)]
    words += [] if data_directory is None else ["--pgdata", str(data_directory)]
    return ServerAccess(
        open_connection,
        workspace().root / "journal",
        inspect_server,
        connect_to_look=look,
        programs_check=InterchangeCheck(workspace(), look),
        data_directory=data_directory,
        restarter=None if restart_command is None else _restarter(restart_command, open_connection),
        addresses=() if dsn is None and data_directory is not None else addresses(dsn),
        revert_command=shlex.join(words),
        host_writers=host_writers(home=workspace().root),
    )


def _restarter(restart_command: str, open_connection: Connect) -> CommandRestarter:
    try:
        words = shlex.split(restart_command)
    except ValueError as error:
        raise UsageError(
            f'could not read --restart-command "{restart_command}"', detail=str(error)
        ) from error
    return command_restarter(words, open_connection)
