"""Run statements, and convert the server's errors to pgdyno's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, LiteralString, TypeAlias, TypeVar

import psycopg
from psycopg import errors, sql

from pgdyno.base.errors import (
    ConnectionFailedError,
    OwnershipError,
    PgdynoError,
    PrivilegeError,
    ServerError,
    SettingError,
)
from pgdyno.base.facts import Fact, Unknown

Connection: TypeAlias = psycopg.Connection[tuple[Any, ...]]
Connect: TypeAlias = Callable[[], Connection]
"""Opens a new connection in autocommit mode. Raises: ConnectionFailedError."""

Row: TypeAlias = tuple[Any, ...]
T = TypeVar("T")

_GRANT = (
    "connect as a superuser, or (since PostgreSQL 15) GRANT ALTER SYSTEM ON PARAMETER … TO the role, "
    "together with pg_read_all_settings"
)
_CLOSED = "its owner has made it unwritable {}; give them the output of pgdyno advise --format conf"
AUTO_CONF = "postgresql.auto.conf"


def run(
    connection: Connection, statement: LiteralString | sql.Composed, parameters: Sequence[object] = ()
) -> list[Row]:
    """Run a statement and return its rows.

    Raises: PrivilegeError, SettingError, OwnershipError or ServerError with the server's message;
    ConnectionFailedError if the connection is lost.
    """
    try:
        cursor = connection.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []
    except psycopg.Error as error:
        raise _converted(connection, error) from error


def value(
    connection: Connection, statement: LiteralString, kind: type[T], parameters: Sequence[object] = ()
) -> T:
    """Run a query and return its only value. Raises: as ``run``; ServerError for another type, or no row."""
    rows = run(connection, statement, parameters)
    found = rows[0][0] if rows and rows[0] else None
    if not isinstance(found, kind):
        raise ServerError(
            "the server's answer is not one of PostgreSQL",
            detail=f'"{statement.strip()}" gave {type(found).__name__}, expected {kind.__name__}',
            hint="if there is a proxy, connect directly to the server",
        )
    return found


def ask(connection: Connection, statement: LiteralString, source: str) -> Fact[list[Row]]:
    """Run a query; Unknown if the role, or the server itself, has no access to the data."""
    try:
        return Fact(run(connection, statement), source)
    except (PrivilegeError, OwnershipError) as error:
        return Fact(Unknown(error.message), source)


def _converted(connection: Connection, error: psycopg.Error) -> PgdynoError:
    message = error.diag.message_primary or str(error).strip()
    detail = error.diag.message_detail
    if connection.closed:
        return ConnectionFailedError("lost the connection to the server", detail=message)
    if isinstance(error, errors.InsufficientPrivilege):
        if AUTO_CONF in message:  # denied by the operating system, for any role
            return OwnershipError(message, detail=detail, hint=_CLOSED.format("to the server"))
        return PrivilegeError(message, detail=detail, hint=_GRANT)
    if isinstance(error, errors.FeatureNotSupported):
        return OwnershipError(message, detail=detail, hint=_CLOSED.format("(allow_alter_system)"))
    if isinstance(
        error, (errors.UndefinedObject, errors.InvalidParameterValue, errors.CantChangeRuntimeParam)
    ):
        return SettingError(message, detail=detail, hint=error.diag.message_hint)
    return ServerError(message, detail=detail or f"SQLSTATE {error.sqlstate}", hint=error.diag.message_hint)
