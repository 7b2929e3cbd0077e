"""Statements of the journal, and the server's refusals in our words."""

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
_CLOSED = "its owner has closed it {}; hand pgdyno advise --format conf to them"
AUTO_CONF = "postgresql.auto.conf"


def run(
    connection: Connection, statement: LiteralString | sql.Composed, parameters: Sequence[object] = ()
) -> list[Row]:
    """Run a statement and return its rows.

    Raises: PrivilegeError, SettingError, OwnershipError or ServerError with the server's own words;
    ConnectionFailedError if the connection is gone.
    """
    try:
        cursor = connection.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else []
    except psycopg.Error as error:
        raise _in_our_words(connection, error) from error


def value(
    connection: Connection, statement: LiteralString, kind: type[T], parameters: Sequence[object] = ()
) -> T:
    """Run a query and return its one value. Raises: as ``run``; ServerError for another type, or none."""
    rows = run(connection, statement, parameters)
    found = rows[0][0] if rows and rows[0] else None
    if not isinstance(found, kind):
        raise ServerError(
            "the server does not answer as PostgreSQL does",
            detail=f'"{statement.strip()}" gave {type(found).__name__}, expected {kind.__name__}',
            hint="connect to the server itself if there is a proxy between",
        )
    return found


def ask(connection: Connection, statement: LiteralString, source: str) -> Fact[list[Row]]:
    """Run a query; data that the role, or the server, may not see is unknown."""
    try:
        return Fact(run(connection, statement), source)
    except (PrivilegeError, OwnershipError) as error:
        return Fact(Unknown(error.message), source)


def _in_our_words(connection: Connection, error: psycopg.Error) -> PgdynoError:
    message = error.diag.message_primary or str(error).strip()
    detail = error.diag.message_detail
    if connection.closed:
        return ConnectionFailedError("lost the connection to the server", detail=message)
    if isinstance(error, errors.InsufficientPrivilege):
        if AUTO_CONF in message:  # it is the operating system that forbids it, to any role
            return OwnershipError(message, detail=detail, hint=_CLOSED.format("to the server"))
        return PrivilegeError(message, detail=detail, hint=_GRANT)
    if isinstance(error, errors.FeatureNotSupported):
        return OwnershipError(message, detail=detail, hint=_CLOSED.format("(allow_alter_system)"))
    if isinstance(
        error, (errors.UndefinedObject, errors.InvalidParameterValue, errors.CantChangeRuntimeParam)
    ):
        return SettingError(message, detail=detail, hint=error.diag.message_hint)
    return ServerError(message, detail=detail or f"SQLSTATE {error.sqlstate}", hint=error.diag.message_hint)
