"""Complete inspection of a server over one connection. Changes nothing.

Every question has a file of its own: settings, capabilities, databases, privileges, managers. They work as
an ordinary role, as a member of pg_monitor and as superuser; what the role may not see is said in words.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import LiteralString

from pgdyno.base.errors import ServerError
from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.postgres.answers import answers_of_postgresql
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.privileges import hidden_things, read_privileges
from pgdyno.postgres.connection.query import ask, require
from pgdyno.postgres.guc import Guc
from pgdyno.postgres.inspection.capabilities import read_capabilities
from pgdyno.postgres.inspection.databases import read_databases_bytes, read_standbys
from pgdyno.postgres.inspection.managers import read_managers
from pgdyno.postgres.inspection.settings import read_overrides, read_settings
from pgdyno.postgres.sampling.planning_share import read_planning_share
from pgdyno.postgres.server import Server

_BACKEND_START: LiteralString = """
    SELECT pg_catalog.date_part('epoch', backend_start)::pg_catalog.float8
      FROM pg_catalog.pg_stat_activity WHERE pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid()"""

_VERSION = re.compile(r"\d+[A-Za-z0-9 ._+~:,()/@-]{0,200}", re.ASCII)
"""A number, and what packagers and forks add to it (configure --with-extra-version)."""
_ABSOLUTE = re.compile(r"/|[A-Za-z]:[/\\]")
"""How paths begin on Unix and on Windows."""

_SHARED_MEMORY: LiteralString = (
    "SELECT pg_catalog.sum(allocated_size)::pg_catalog.int8 FROM pg_catalog.pg_shmem_allocations"
)
_SEGMENTS_MADE: LiteralString = """
    SELECT pg_catalog.sum(writes)::pg_catalog.int8 FROM pg_catalog.pg_stat_io
     WHERE object OPERATOR(pg_catalog.=) 'wal' AND context OPERATOR(pg_catalog.=) 'init'"""
_WAL_IN_PG_STAT_IO = 180_000

_SHOWN = 200  # characters of an invalid value; arbitrary


@dataclass(frozen=True)
class Backend:
    """The server's process behind a connection; ``pid`` as the server sees it, in its own PID namespace."""

    pid: int
    start_s: float | None  # seconds since 1970; None: the server does not show it


@answers_of_postgresql()
def inspect_server(connection: Connection) -> Server:
    """Read all that the connected role may see. Co-location is not known here: it takes a look at the host.

    Raises: ServerError if the server does not answer what every role may ask, or not as PostgreSQL does;
    ConnectionFailedError if the connection is lost.
    """
    settings = read_settings(connection)
    _check_configuration_file(settings)
    privileges = read_privileges(connection)
    return Server(
        version_num=_version_num(settings),
        version=_version(settings),
        settings=settings,
        capabilities=read_capabilities(connection, settings),
        overrides=read_overrides(connection),
        databases_bytes=read_databases_bytes(connection),
        standbys=read_standbys(connection),
        is_in_recovery=require(
            connection, "SELECT pg_catalog.pg_is_in_recovery()", bool, "pg_is_in_recovery()"
        ),
        data_directory=_data_directory(settings),
        is_superuser=privileges.is_superuser,
        hidden=hidden_things(privileges, settings),
        is_colocated=unknown("this host was not inspected", "co-location"),
        managers=read_managers(connection, settings),
        build=require(connection, "SELECT pg_catalog.version()", str, "version()"),
        shared_memory_bytes=ask(connection, _SHARED_MEMORY, int, "pg_shmem_allocations"),
        planning=read_planning_share(connection, settings),
        wal_segments_made=_wal_segments_made(connection, settings),
    )


def _wal_segments_made(connection: Connection, settings: Mapping[str, Guc]) -> Fact[int]:
    """Return how many segments were made; one write is counted for each."""
    if _version_num(settings) < _WAL_IN_PG_STAT_IO:
        return unknown(f"PostgreSQL {_version(settings)} does not count it", "pg_stat_io")
    return ask(connection, _SEGMENTS_MADE, int, "pg_stat_io")


def identify_backend(connection: Connection) -> Backend:
    """Return how the connection's backend is recognised on its host.

    The server is asked for the pid: through a pooler, libpq's own idea of it is the pooler's.
    """
    return Backend(
        pid=require(connection, "SELECT pg_catalog.pg_backend_pid()", int, "pg_backend_pid()"),
        start_s=ask(connection, _BACKEND_START, float, "pg_stat_activity.backend_start").or_none(),
    )


def _version_num(settings: Mapping[str, Guc]) -> int:
    told = _told(settings, "server_version_num")
    if not (told.isascii() and told.isdigit()):
        raise _not_postgresql("server_version_num", told, "PostgreSQL reports a whole number, 180006")
    return int(told)


def _version(settings: Mapping[str, Guc]) -> str:
    """Return the version, which nobody has to quote. Its form is the server's choice, its characters not."""
    told = _told(settings, "server_version")
    if not _VERSION.fullmatch(told):
        raise _not_postgresql("server_version", told, "PostgreSQL reports 18.6 or 18.6 (Debian 18.6-1)")
    return told


def _check_configuration_file(settings: Mapping[str, Guc]) -> None:
    """Raise unless it is an absolute path, or hidden from this role, or not there."""
    guc = settings.get("config_file")
    if guc is None or not guc.setting:
        return
    if not (_ABSOLUTE.match(guc.setting) and guc.setting.isprintable()):
        raise _not_postgresql("config_file", guc.setting, "PostgreSQL reports an absolute path")


def _told(settings: Mapping[str, Guc], name: str) -> str:
    guc = settings.get(name)
    return "" if guc is None else guc.setting


def _not_postgresql(name: str, told: str, usual: str) -> ServerError:
    shown = ascii(told[:_SHOWN])[1:-1]
    return ServerError(
        f'the server gives an invalid value for "{name}": "{shown}"',
        detail=usual,
        hint="connect to the server itself if there is a proxy between",
    )


def _data_directory(settings: Mapping[str, Guc]) -> Fact[str]:
    source = "pg_settings.setting of data_directory"
    if (guc := settings.get("data_directory")) is None:
        return Fact(Unknown("only members of pg_read_all_settings and superusers see it"), source)
    return Fact(guc.setting, source)
