"""Control connections to a PostgreSQL server; never for load.

``connect`` honours everything that libpq does: environment variables, service files, password files,
URIs and key=value strings. No text that leaves this module contains a password.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo, PGconn

from pgdyno.model.servers.server import Postmaster
from pgdyno.server.connection.connection_errors import (
    bad_connection_string,
    connection_failed,
    statement_failed,
)
from pgdyno.server.connection.control_connection import ControlConnection

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]

CONNECT_TIMEOUT_S = 5  # per address; a local server answers in milliseconds. libpq's own default is for ever
STATEMENT_TIMEOUT_S = (
    10  # our catalog queries take milliseconds; counting the files of a huge cluster may not
)
_PORT = 5432  # what libpq takes an empty one in a list for
_NO_MODE = "pgdyno-does-not-connect"
_PASSWORDS = frozenset({"password", "sslpassword", "oauth_client_secret"})
_KEYS = frozenset({"scram_client_key", "scram_server_key"})  # libpq takes them for "debug" options
_SHOWN_AS_STARS = b"*"  # dispchar of PQconndefaults: "password field - hide value"
# The search path comes first: a database or role may bring one with operators that somebody has planted.
_LIMITS = b"SET search_path = ''; SET statement_timeout = '%ds'; SET lock_timeout = '%ds'" % (
    STATEMENT_TIMEOUT_S,
    STATEMENT_TIMEOUT_S,
)
_READ_ONLY = b"; SET default_transaction_read_only = on"
_NO_LIMITS = (
    b"RESET search_path; RESET statement_timeout; RESET lock_timeout; RESET default_transaction_read_only"
)
_SEARCH_PATH = b"SELECT pg_catalog.set_config('search_path', %s, false)"
_NAMING = ("dbname", "service")  # a service names a database as well


def connect(
    dsn: str | None = None, *, is_read_only: bool = True, database: str | None = None
) -> ControlConnection:
    """Connect in autocommit mode, with limits for connecting and for every statement and its answer.

    The search path is empty, so that names and operators without a schema are PostgreSQL's own.
    ``dsn`` None means libpq's defaults; ``database`` stands for the one that it names. ``is_read_only`` lets
    the server refuse to write to a database (ALTER SYSTEM is not such a write, by PostgreSQL's own rule).
    Raises: UsageError if the string cannot be parsed; ConnectionFailedError if there is no connection.
    """
    parameters = _parse(dsn)
    try:
        connection = open_session(dsn, database=database)
        connection.execute(_limits(is_read_only=is_read_only))
    except psycopg.Error as error:
        # "from None": psycopg's exception may carry the whole connection string.
        raise connection_failed(str(error), _target(parameters)) from None
    return connection


def open_session(dsn: str | None, *, database: str | None = None) -> ControlConnection:
    """Connect in autocommit mode, and leave the session's settings as the server and the role have them.

    Raises: psycopg.OperationalError; UsageError if the string cannot be parsed.
    """
    ours: dict[str, Any] = {"fallback_application_name": "pgdyno"}
    if database is not None:
        ours["dbname"] = database
    if "connect_timeout" not in _parse(dsn) and "PGCONNECT_TIMEOUT" not in os.environ:
        ours["connect_timeout"] = CONNECT_TIMEOUT_S
    return ControlConnection.connect(dsn or "", autocommit=True, **ours)


def postmaster_dsn(postmaster: Postmaster, *, owner: str, database: str | None = None) -> str:
    """Return a connection string for a running postmaster: its socket, else its address.

    Where the environment names no role, it is the owner of the data directory, whom initdb makes superuser,
    rather than, say, root; and the database that every cluster has.
    """
    parameters: dict[str, Any] = {
        "host": postmaster.socket_directory or postmaster.listen_address or "localhost",
        "port": postmaster.port,
    }
    if "PGUSER" not in os.environ:
        parameters["user"] = owner
    if database is not None or "PGDATABASE" not in os.environ:
        parameters["dbname"] = database or "postgres"
    return make_conninfo("", **parameters)


@contextmanager
def without_session_limits(
    connection: Connection, *, is_read_only: bool = True, search_path: str | None = None
) -> Iterator[None]:
    """Reset this session's settings to the server's values while the block runs.

    ``pg_settings`` shows a session's own values: what ``connect`` sets would hide what is configured. The
    search path is the server's as well, or ``search_path``, so that operators in the block need a schema.
    """
    _run(connection, _NO_LIMITS)
    try:
        if search_path is not None:
            _run(connection, _SEARCH_PATH, (search_path,))
        yield
    finally:
        if not connection.closed:
            _run(connection, _limits(is_read_only=is_read_only))


def describe(connection: Connection) -> str:
    """Name the server, database and role of a connection for people; without a password."""
    info = connection.info
    return f"host={info.host} port={info.port} dbname={info.dbname} user={info.user}"


def addresses(dsn: str | None) -> tuple[str, ...]:
    """Return where libpq would look for a server, each written as ``host=… port=…``, without looking.

    None are known if the string names a service that is not defined.
    Raises: UsageError if the string cannot be parsed.
    """
    parameters = {**_parse(dsn), "sslmode": _NO_MODE}
    # Service files and environment are resolved before this mode ends it, long before any network.
    resolved = PGconn.connect_start(make_conninfo("", **parameters).encode())
    if _NO_MODE.encode() not in resolved.error_message:
        return ()
    given = {one.keyword: (one.val or b"").decode() for one in resolved.info}
    hosts = (given[b"host"] or given[b"hostaddr"] or resolved.host.decode()).split(",")
    ports = given[b"port"].split(",")
    each = ports * len(hosts) if len(ports) == 1 else ports
    return tuple(f"host={host} port={port or _PORT}" for host, port in zip(hosts, each, strict=True))


def without_password(dsn: str) -> str:
    """Return a connection string as far as it may be shown and typed again.

    Raises: UsageError if the string cannot be parsed.
    """
    return make_conninfo("", **{key: value for key, value in _parse(dsn).items() if key not in _secrets()})


def names_database(dsn: str | None) -> bool:
    """Whether a connection string, or else libpq's environment, names a database.

    Raises: UsageError if the string cannot be parsed.
    """
    given = _parse(dsn)
    return any(given.get(one) for one in _NAMING) or any(map(os.environ.get, ("PGDATABASE", "PGSERVICE")))


def has_password(dsn: str) -> bool:
    """Whether a connection string carries a password, which other users can see in the process list.

    Raises: UsageError if the string cannot be parsed.
    """
    return not _secrets().isdisjoint(_parse(dsn))


@cache
def _secrets() -> frozenset[str]:
    """Return the keywords whose values are secrets: those known here, and those that libpq hides."""
    hidden = {one.keyword.decode() for one in Conninfo.get_defaults() if one.dispchar == _SHOWN_AS_STARS}
    return _PASSWORDS | _KEYS | hidden


def _run(connection: Connection, statements: bytes, parameters: Sequence[str] | None = None) -> None:
    try:
        connection.execute(statements, parameters)
    except psycopg.Error as error:
        raise statement_failed(error, is_closed=connection.closed) from error


def _limits(*, is_read_only: bool) -> bytes:
    return _LIMITS + _READ_ONLY if is_read_only else _LIMITS


def _parse(dsn: str | None) -> Mapping[str, Any]:
    try:
        return conninfo_to_dict(dsn or "")
    except psycopg.ProgrammingError as error:
        raise bad_connection_string(str(error)) from None  # its text may quote the password


def _target(parameters: Mapping[str, Any]) -> str:
    """Name the server as far as the connection string and the environment do."""

    def value(keyword: str) -> str | None:
        given = parameters.get(keyword)
        return str(given) if given is not None else os.environ.get(f"PG{keyword.upper()}")

    host = value("hostaddr") or value("host") or "the default socket"
    return f'"{host}", port {value("port") or "5432"}'
