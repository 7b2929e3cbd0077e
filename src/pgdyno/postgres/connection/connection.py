"""Control connections to a PostgreSQL server; never for load.

``connect`` is read-only and leaves no state in the session. ``connect_to_change`` needs a dedicated session,
so it refuses a pooler. Both support everything that libpq does: environment variables, service files,
password files, URIs and key=value strings. No text that this module returns contains a password, except
connection strings.
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
from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection_errors import (
    bad_connection_string,
    connection_failed,
    server_errors_converted,
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

CONNECT_TIMEOUT_S = 5  # per address; a local server answers in milliseconds. libpq's default is no limit
_PORT = 5432  # libpq's value for an empty entry in a list of ports
_NO_MODE = "pgdyno-does-not-connect"
_PASSWORDS = frozenset({"password", "sslpassword", "oauth_client_secret"})
_KEYS = frozenset({"scram_client_key", "scram_server_key"})  # libpq lists them as debug options
_SHOWN_AS_STARS = b"*"  # dispchar of PQconndefaults: "password field - hide value"
# libpq sends the encoding in the startup packet, where it overrides the role's and the database's; a pooler
# keeps it per client. No name is sent: PgBouncer would keep it for later clients that have none.
_SENT = {"client_encoding": "UTF8", "application_name": ""}
_WITHOUT_TRANSACTIONS = "statement pooling mode"  # in PgBouncer's error for a refused BEGIN; never translated
# Safe under any search path: all names are schema-qualified.
_OWN_ADDRESS: LiteralString = """
SELECT pg_catalog.host(pg_catalog.inet_server_addr()), pg_catalog.current_setting('port'),
       (SELECT setting FROM pg_catalog.pg_settings
        WHERE name OPERATOR(pg_catalog.=) 'unix_socket_directories')
"""
# Reset a role that the database's owner has set for all sessions (ALTER DATABASE … SET role).
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
_NAMING = ("dbname", "service")  # a service may name a database, too


def connect(
    dsn: str | None = None, *, database: str | None = None, settings: Settings = READING
) -> ReadingConnection:
    """Connect read-only to a server, possibly through a pooler, with limits for every response.

    All transactions are READ ONLY and have ``settings``, including an empty search path. ``dsn`` None means
    libpq's defaults; ``database`` overrides the database in ``dsn``.
    Raises: UsageError if the string cannot be parsed; ConnectionFailedError if connecting fails;
    RefusedError for a pooler in statement pooling mode.
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
    """Refuse a pooler in statement pooling mode. Raises: RefusedError, psycopg.Error."""
    try:
        with look(connection, {}):
            pass
    except psycopg.OperationalError as error:
        if _WITHOUT_TRANSACTIONS not in str(error):
            raise
        with closing(_open(ReadingConnection, dsn, database)) as another:
            raise _no_session(another, "it may run each statement in a different server session") from None


def connect_to_change(dsn: str | None = None, *, database: str | None = None) -> ControlConnection:
    """Connect in autocommit mode to change a server, in a dedicated session with limits.

    The search path is empty: unqualified names and operators resolve to PostgreSQL's own. Settings that the
    database's owner has set for its sessions, including a role, are overridden.
    Raises: UsageError if the string cannot be parsed; ConnectionFailedError if connecting fails;
    RefusedError behind a pooler, before anything is set.
    """
    with _failures_named(dsn), ExitStack() as stack:
        connection = stack.enter_context(closing(open_session(dsn, database=database)))
        set_for_session(connection, {**OWN_SESSION, "application_name": _name(dsn)})
        connection.execute(_OWN_ROLE)
        stack.pop_all()
    return connection


def open_session(dsn: str | None, *, database: str | None = None) -> ControlConnection:
    """Connect in autocommit mode, with the session settings that the server and the role define.

    Raises: psycopg.OperationalError; UsageError if the string cannot be parsed; RefusedError behind a pooler.
    """
    with ExitStack() as stack:
        connection = stack.enter_context(closing(_open(ControlConnection, dsn, database)))
        require_no_pooler(connection)
        stack.pop_all()
    return connection


@checked_results()
def require_no_pooler(connection: Connection) -> None:
    """Refuse a connection through a pooler, which may share the server session with other clients.

    A pooler reports its own process ids to clients. Raises: RefusedError.
    """
    with server_errors_converted():
        pid = server_pid(connection)
    if pid != connection.info.backend_pid:
        raise _no_session(
            connection, "settings and locks would remain in a server session that other clients also use"
        )


def _open(kind: type[_Kind], dsn: str | None, database: str | None) -> _Kind:
    parameters: dict[str, Any] = {**_SENT}
    if database is not None:
        parameters["dbname"] = database
    if "connect_timeout" not in _parse(dsn) and "PGCONNECT_TIMEOUT" not in os.environ:
        parameters["connect_timeout"] = CONNECT_TIMEOUT_S
    # A prepared statement would remain in the session, which may be a pooler's.
    return kind.connect(dsn or "", autocommit=True, prepare_threshold=None, **parameters)


def _name(dsn: str | None) -> str:
    """Return the application_name for pgdyno's sessions: the user's, but not one from a service file."""
    return str(_parse(dsn).get("application_name") or os.environ.get("PGAPPNAME") or "pgdyno")


def _no_session(connection: Connection, why: str) -> RefusedError:
    """Return the refusal of a pooler; its hint contains the server's own address."""
    [[address, port, directories]] = connection.execute(_OWN_ADDRESS).fetchall()
    host = address or (directories or "the directory of its socket").split(",")[0]
    return RefusedError(
        "the connection goes through a connection pooler",
        detail=why,
        hint=f"connect to the server directly: --dsn 'host={host} port={port}'",
    )


@contextmanager
def _failures_named(dsn: str | None) -> Iterator[None]:
    parameters = _parse(dsn)
    try:
        with checked_results():
            yield
    except psycopg.Error as error:
        # "from None": psycopg's exception may carry the whole connection string.
        raise connection_failed(str(error), _target(parameters)) from None


def postmaster_dsn(postmaster: Postmaster, *, owner: str, database: str | None = None) -> str:
    """Return a connection string for a running postmaster: its socket, else its address.

    Unless the environment sets them, the role is the data directory's owner (initdb's default superuser, not
    the current user, who may be root) and the database is ``postgres``.
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
    """Return a connection string for this connection's server: with several hosts, the connected one.

    ``dsn`` is the string that the connection was made with. If it names one host, it is returned unchanged:
    the host name may resolve to a new address later.
    """
    info, named = connection.info, _parse(dsn)
    given = [named.get(keyword) or os.environ.get(variable) or "" for keyword, variable in _WHERE.items()]
    if not any("," in str(one) for one in given) and not (
        named.get("service") or os.environ.get("PGSERVICE")
    ):
        return dsn or ""
    where: dict[str, Any] = {"host": info.host, "port": info.port}
    if info.hostaddr:
        where["hostaddr"] = info.hostaddr
    return make_conninfo(dsn or "", **where)


def describe(connection: Connection) -> str:
    """Return a display text with a connection's server, database and role, without a password."""
    info = connection.info
    return f"host={info.host} port={info.port} dbname={info.dbname} user={info.user}"


def encoding_of(connection: Connection) -> str:
    """Return the encoding of a connection's database, as PostgreSQL names it."""
    return connection.info.parameter_status("server_encoding") or "UTF8"


def addresses(dsn: str | None) -> tuple[str, ...]:
    """Return the addresses that libpq would try, each as ``host=… port=…``, without connecting.

    Empty if the string names an undefined service.
    Raises: UsageError if the string cannot be parsed.
    """
    parameters = {**_parse(dsn), "sslmode": _NO_MODE}
    # libpq resolves service files and environment before it rejects this mode; it opens no connection.
    resolved = PGconn.connect_start(make_conninfo("", **parameters).encode())
    if _NO_MODE.encode() not in resolved.error_message:
        return ()
    given = {one.keyword: (one.val or b"").decode() for one in resolved.info}
    hosts = (given[b"host"] or given[b"hostaddr"] or resolved.host.decode()).split(",")
    ports = given[b"port"].split(",")
    each = ports * len(hosts) if len(ports) == 1 else ports
    return tuple(f"host={host} port={port or _PORT}" for host, port in zip(hosts, each, strict=True))


def without_password(dsn: str) -> str:
    """Return a connection string without its secrets, for display.

    Raises: UsageError if the string cannot be parsed.
    """
    return make_conninfo("", **{key: value for key, value in _parse(dsn).items() if key not in _secrets()})


def names_database(dsn: str | None) -> bool:
    """Whether a connection string or libpq's environment names a database.

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
    """Return the keywords of secret parameters: those known here, and those that libpq marks as secret."""
    hidden = {one.keyword.decode() for one in Conninfo.get_defaults() if one.dispchar == _SHOWN_AS_STARS}
    return _PASSWORDS | _KEYS | hidden


def _parse(dsn: str | None) -> Mapping[str, Any]:
    try:
        return conninfo_to_dict(dsn or "")
    except psycopg.ProgrammingError as error:
        raise bad_connection_string(str(error)) from None  # its text may quote the password


def _target(parameters: Mapping[str, Any]) -> str:
    """Return the server's address as given by the connection string and the environment."""

    def value(keyword: str) -> str | None:
        given = parameters.get(keyword)
        return str(given) if given is not None else os.environ.get(f"PG{keyword.upper()}")

    host = value("hostaddr") or value("host") or "the default socket"
    return f'"{host}", port {value("port") or "5432"}'
