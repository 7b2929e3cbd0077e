"""Someone's running server as an arm of an experiment."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from pgdyno.host.colocation import find_postmaster
from pgdyno.model.errors import ServerError
from pgdyno.model.facts import Unknown
from pgdyno.server.connection import connect
from pgdyno.server.inspection import identify_backend


@dataclass(frozen=True)
class AttachedServer:
    """Someone's server as an arm sees it: it is neither started nor stopped."""

    dsn: str
    host: str
    port: int
    user: str
    pid: int

    def connect(self, database: str) -> psycopg.Connection:
        """Open a control connection without pgdyno's usual time limits: a checkpoint may take its time."""
        return psycopg.connect(make_conninfo(self.dsn, dbname=database), autocommit=True)

    def last_log_lines(self) -> str:
        """Say where to look."""
        return "its own log says why"

    def stop(self, *, is_immediate: bool = False) -> None:
        """Leave it running."""


def find_attached_server(dsn: str, data_directory: str) -> tuple[AttachedServer, Mapping[str, str]]:
    """Find the server as it runs now, and what generators need in their environment to get in.

    Raises: ConnectionFailedError; ServerError if it is not proven to run on this host.
    """
    with closing(connect(dsn)) as connection:
        info, backend = connection.info, identify_backend(connection)
        postmaster = find_postmaster(
            Path("/"),
            backend_pid=backend.pid,
            backend_start=backend.start_s,
            data_directory=data_directory,
        )
        if isinstance(postmaster.value, Unknown):
            raise ServerError("the server is not proven to run on this host", detail=postmaster.value.reason)
        environment = {"PGPASSWORD": info.password} if info.password else {}
        return AttachedServer(dsn, info.host, info.port, info.user, postmaster.value), environment
