"""Control connections to a PostgreSQL server; never for load.

``connect`` is for looking: it leaves nothing in the session. ``connect_to_change`` has a session of its own,
and so no pooler before the server. Both honour everything that libpq does: environment variables,
service files, password files, URIs and key=value strings. No text that leaves this module contains a
password.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from typing import Any, LiteralString, TypeAlias, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import Conninfo, PGconn

from pgdyno.base.errors import RefusedError
from pgdyno.postgres.answers import answers_of_postgresql
from pgdyno.postgres.connection.connection_errors import (
    bad_connection_string,
    connection_failed,
    failures_in_words,
)
from pgdyno.postgres.connection.control_connection import (
    OWN_SESSION,
    READING,
    ControlConnection,
    ReadingConnection,
    Settings,
    look,
    server_pid,
    set_for_session,
)
from pgdyno.postgres.server import Postmaster

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
_Kind = TypeVar("_Kind", bound=ControlConnection)

CONNECT_TIMEOUT_S = 5  # per address; a local server answers in milliseconds. libpq's own default is for ever
_PORT = 5432  # what libpq takes an empty one in a list for
_NO_MODE = "pgdyno-does-not-connect"
_PASSWORDS = frozenset({"password", "sslpassword", "oauth_client_secret"})
_KEYS = frozenset({"scram_client_key", "scram_server_key"})  # libpq takes them for "debug" options
_SHOWN_AS_STARS = b"*"  # dispchar of PQconndefaults: "password field - hide value"
# libpq sends the encoding as a session begins, where it counts more than that of a role or database; a pooler
# keeps it for each client. No name is sent: PgBouncer would leave it to clients that have none.
_SENT = {"client_encoding": "UTF8", "application_name": ""}
_WITHOUT_TRANSACTIONS = "statement pooling mode"  # PgBouncer's words for a refused BEGIN; it translates none
# Asked whatever the search path is: everything has its schema.
_OWN_ADDRESS: LiteralString = """
SELECT pg_catalog.host(pg_catalog.inet_server_addr()), pg_catalog.current_setting('port'),
       (SELECT setting FROM pg_catalog.pg_settings
        WHERE name OPERATOR(pg_catalog.=) 'unix_socket_directories')
"""
# Take back a role that the owner of a database has chosen for all who come there.
_OWN_ROLE: LiteralString = """
SELECT pg_catalog.set_config('role', 'none', false)
FROM pg_catalog.pg_db_role_setting s CROSS JOIN LATERAL pg_catalog.unnest(s.setconfig) AS c (setting)
LEFT JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) s.setdatabase
LEFT JOIN pg_catalog.pg_roles r ON r.oid OPERATOR(pg_catalog.=) s.setrole
WHERE c.setting OPERATOR(pg_catalog.~) '^role='
  AND COALESCE(d.datname, pg_catalog.current_database()) OPERATOR(pg_catalog.=) pg_catalog.current_database()
  AND COALESCE(r.rolname, session_user) OPERATOR(pg_catalog.=) session_user
HAVING pg_catalog.bool_and(r.rolname IS NULL AND d.datname IS NOT NULL)
"""
_WHERE = {"host": "PGHOST", "hostaddr": "PGHOSTADDR", "port": "PGPORT"}
_NAMING = ("dbname", "service")  # a service names a database as well


def connect(
    dsn: str | None = None, *, database: str | None = None, settings: Settings = READING
) -> ReadingConnection:
    """Connect to look at a server, perhaps through a pooler, with limits for every answer.

    No transaction can write to the database; each has ``settings``, an empty search path among them.
    ``dsn`` None means libpq's defaults; ``database`` stands for the one that it names.
    Raises: UsageError if the string cannot be parsed; ConnectionFailedError if there is no connection;
    RefusedError for a pooler that gives every statement another session.
    """
    with _failures_named(dsn), ExitStack() as stack:
        connection = stack.enter_context(closing(_open(ReadingConnection, dsn, database)))
        connection.settings = {**settings, "application_name": _name(dsn)}
        if server_pid(connection) == connection.info.backend_pid:
            set_for_session(connection, {**OWN_SESSION, "application_name": _name(dsn)})
        else:
            _require_transactions(connection, dsn, database)
        stack.pop_all()
    return connection


def _require_transactions(connection: ReadingConnection, dsn: str | None, database: str | None) -> None:
    """Refuse a pooler in whose sessions no statements belong together. Raises: psycopg.Error."""
    try:
        with look(connection, {}):
            pass
    except psycopg.OperationalError as error:
        if _WITHOUT_TRANSACTIONS not in str(error):
            raise
        with closing(_open(ReadingConnection, dsn, database)) as another:
            raise _no_session(another, "it gives every statement another session of the server") from None


def connect_to_change(dsn: str | None = None, *, database: str | None = None) -> ControlConnection:
    """Connect in autocommit mode to change a server, in a session of pgdyno's own, which has limits.

    The search path is empty, so that names and operators without a schema are PostgreSQL's own; what
    the database's owner has set for its sessions does not count, a role included.
    Raises: UsageError if the string cannot be parsed; ConnectionFailedError if there is no connection;
    RefusedError behind a pooler, before anything is set.
    """
    with _failures_named(dsn), ExitStack() as stack:
        connection = stack.enter_context(closing(open_session(dsn, database=database)))
        set_for_session(connection, {**OWN_SESSION, "application_name": _name(dsn)})
        connection.execute(_OWN_ROLE)
        stack.pop_all()
    return connection


def open_session(dsn: str | None, *, database: str | None = None) -> ControlConnection:
    """Connect in autocommit mode, and leave the session's settings as the server and the role have them.

    Raises: psycopg.OperationalError; UsageError if the string cannot be parsed; RefusedError behind a pooler.
    """
    with ExitStack() as stack:
        connection = stack.enter_context(closing(_open(ControlConnection, dsn, database)))
        require_no_pooler(connection)
        stack.pop_all()
    return connection


@answers_of_postgresql()
def require_no_pooler(connection: Connection) -> None:
    """Refuse a connection whose server session others get as well.

    A pooler gives its clients process ids of its own. Raises: RefusedError.
    """
    with failures_in_words():
        pid = server_pid(connection)
    if pid != connection.info.backend_pid:
        raise _no_session(
            connection, "settings and locks would stay in a session of the server that others use as well"
        )


def _open(kind: type[_Kind], dsn: str | None, database: str | None) -> _Kind:
    ours: dict[str, Any] = {**_SENT}
    if database is not None:
        ours["dbname"] = database
    if "connect_timeout" not in _parse(dsn) and "PGCONNECT_TIMEOUT" not in os.environ:
        ours["connect_timeout"] = CONNECT_TIMEOUT_S
    # A prepared statement would stay in the session, which may be a pooler's.
    return kind.connect(dsn or "", autocommit=True, prepare_threshold=None, **ours)


def _name(dsn: str | None) -> str:
    """Return the name of pgdyno's sessions: the user's own, unless it is in a service file alone."""
    return str(_parse(dsn).get("application_name") or os.environ.get("PGAPPNAME") or "pgdyno")


def _no_session(connection: Connection, why: str) -> RefusedError:
    """Return the refusal of a pooler, with the address that the server itself has."""
    [[address, port, directories]] = connection.execute(_OWN_ADDRESS).fetchall()
    host = address or (directories or "the directory of its socket").split(",")[0]
    return RefusedError(
        "a connection pooler stands before the server",
        detail=why,
        hint=f"name the server's own address: --dsn 'host={host} port={port}'",
    )


@contextmanager
def _failures_named(dsn: str | None) -> Iterator[None]:
    parameters = _parse(dsn)
    try:
        with answers_of_postgresql():
            yield
    except psycopg.Error as error:
        # "from None": psycopg's exception may carry the whole connection string.
        raise connection_failed(str(error), _target(parameters)) from None


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


def dsn_of(connection: Connection, dsn: str | None) -> str:
    """Return a connection string that leads to where this connection does: of several hosts, the one.

    ``dsn`` is what it was made with, and stays as it is if it names one host: that may move, by its name.
    """
    info, named = connection.info, _parse(dsn)
    given = [named.get(of) or os.environ.get(variable) or "" for of, variable in _WHERE.items()]
    if not any("," in str(one) for one in given) and not (
        named.get("service") or os.environ.get("PGSERVICE")
    ):
        return dsn or ""
    where: dict[str, Any] = {"host": info.host, "port": info.port}
    if info.hostaddr:
        where["hostaddr"] = info.hostaddr
    return make_conninfo(dsn or "", **where)


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
