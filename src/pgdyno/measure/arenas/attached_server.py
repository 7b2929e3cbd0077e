"""An attached server as an arm of an experiment."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pgdyno.base.errors import ServerError, UsageError
from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.processes.colocation import find_postmaster
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import DataSet, Workload
from pgdyno.model.variants.schema_sql import SchemaChange
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection, connect, dsn_of, open_session, require_no_pooler
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.connection.control_connection import LONG_LIMIT_S, ControlConnection
from pgdyno.postgres.connection.libpq_environment import LIBPQ_VARIABLES
from pgdyno.postgres.connection.load_security import DEFAULT_FILES, Negotiated, load_parameters
from pgdyno.postgres.inspection.inspection import identify_backend

_DATA_DIRECTORY = """
SELECT setting FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'data_directory'
"""
_OPTIONS = "PGOPTIONS"
_IS_GSS = """
SELECT encrypted FROM pg_catalog.pg_stat_gssapi
WHERE pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()
"""


class AttachedBase:
    """The behaviour of arenas on attached servers that differs from scratch arenas."""

    @property
    def installation_name(self) -> None:
        """None: no command line can name this server in its original state."""
        return

    def build_notes(self, _variants: Sequence[Variant]) -> tuple[str, ...]:
        """Return nothing: there is a single build."""
        return ()

    def schema_changes(
        self, _variants: Sequence[Variant], _workloads: Sequence[Workload]
    ) -> tuple[SchemaChange, ...]:
        """Return nothing: a running server's schema is never changed."""
        return ()

    def memory_note(self, limit_bytes: int) -> str:
        """Reject the limit: an attached server's memory cannot be limited. Raises: UsageError."""
        raise UsageError(
            f"the memory of a running server cannot be limited to {limit_bytes} bytes",
            hint="measure on servers that pgdyno starts: --embedded or --pg-bin",
        )

    def shared_memory_bytes(self, _variant: Variant) -> int:
        """Return 0: no huge page pool is reserved for this server."""
        return 0

    def why_uncounted(self, _variants: Sequence[Variant]) -> str:
        """Return why no statements are counted."""
        return "the owner of a running server decides which libraries it loads"

    def check(self, _variants: Sequence[Variant]) -> None:
        """Do nothing: the server validates settings when they are applied."""

    def discard(self, _variants: Sequence[Variant], _seats: Sequence[int], _data_set: DataSet) -> None:
        """Do nothing: the user's data stay, and ours are dropped with the arena."""

    @contextmanager
    def prepared_for(self, _study: Study) -> Iterator[Self]:
        """Provide the arena unchanged: the machine is not prepared."""
        yield self


@dataclass(frozen=True)
class AttachedServer:
    """An attached server as an arm; pgdyno neither starts nor stops it."""

    dsn: str
    host: str
    port: int
    user: str
    pid: int | None  # None: not proven to run on this host

    def connect(self, database: str) -> ControlConnection:
        """Open a control connection without pgdyno's usual time limits: a checkpoint may take long."""
        connection = open_session(self.dsn, database=database)
        connection.answer_limit_s = LONG_LIMIT_S
        return connection

    def last_log_lines(self) -> str:
        """Return where to look."""
        return "see the server's log"

    def stop(self, *, is_immediate: bool = False) -> None:
        """Do nothing: the server keeps running."""


def find_attached_server(dsn: str, data_directory: str) -> tuple[AttachedServer, Mapping[str, str]]:
    """Return the server on this host, and the environment for generators' connections.

    Raises: ConnectionFailedError; ServerError if it is not proven to run on this host; RefusedError if
    generators' connections would be less secure than pgdyno's.
    """
    server, environment, postmaster = _inspected(dsn, data_directory)
    if isinstance(postmaster.value, Unknown):
        raise ServerError("the server is not proven to run on this host", detail=postmaster.value.reason)
    return server, environment


def find_remote_server(dsn: str) -> tuple[AttachedServer, Mapping[str, str]]:
    """Return the server on any host, and the environment for generators' connections.

    Raises: ConnectionFailedError; RefusedError as above.
    """
    server, environment, _ = _inspected(dsn, None)
    return server, environment


@server_errors_converted()
@checked_results()
def _inspected(dsn: str, data_directory: str | None) -> tuple[AttachedServer, Mapping[str, str], Fact[int]]:
    with closing(connect(dsn)) as connection:
        require_no_pooler(connection)
        info, postmaster = connection.info, postmaster_of(connection, data_directory)
        server = AttachedServer(
            dsn_of(connection, dsn), info.host, info.port, info.user, postmaster.or_none()
        )
        return server, _environment(connection), postmaster


def postmaster_of(connection: Connection, data_directory: str | None = None) -> Fact[int]:
    """Return the postmaster's PID, or why it is not proven to run on this host.

    ``data_directory`` is the server's, if known.
    """
    backend = identify_backend(connection)
    return find_postmaster(
        Path("/"),
        backend_pid=backend.pid,
        backend_start=backend.start_s,
        data_directory=data_directory or _data_directory(connection),
    )


def _data_directory(connection: Connection) -> str | None:
    """Return the data directory; None if the role may not read the setting."""
    row = connection.execute(_DATA_DIRECTORY).fetchone()
    return None if row is None else str(row[0])


def _environment(connection: Connection) -> dict[str, str]:
    """Return libpq variables for security, and for options that have no command-line argument.

    Generators get the options of the control connection. A PGOPTIONS that the connection string overrides
    must not reach the generators.
    """
    found = {LIBPQ_VARIABLES[name]: value for name, value in load_parameters(_negotiated(connection)).items()}
    if connection.info.options or _OPTIONS in os.environ:
        found[_OPTIONS] = connection.info.options
    return found


def _negotiated(connection: Connection) -> Negotiated:
    parameters = {one.keyword.decode(): one.val.decode() for one in connection.pgconn.info if one.val}
    if "hostaddr" in parameters:  # may be a list, of which one answered
        parameters["hostaddr"] = connection.info.hostaddr
    files = {name: Path.home() / ".postgresql" / file for name, file in DEFAULT_FILES.items()}
    return Negotiated(
        {**parameters, "password": connection.info.password},  # also one from a password file
        is_tls=connection.pgconn.ssl_in_use,
        is_gss=connection.execute(_IS_GSS).fetchone() == (True,),
        default_files={name: str(file) for name, file in files.items() if file.exists()},
    )
