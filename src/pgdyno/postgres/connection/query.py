"""Query a server and return a Fact.

The value is Unknown if the role lacks the privilege or the server does not have the object.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import errors

from pgdyno.base.errors import ServerError
from pgdyno.base.facts import Fact, Unknown
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import statement_failed

AS_BYTES: LiteralString = """
pg_catalog.convert_to({}, CASE WHEN pg_catalog.getdatabaseencoding() OPERATOR(pg_catalog.=) 'SQL_ASCII'
                          THEN 'SQL_ASCII' ELSE 'UTF8' END)
"""
"""The bytes of a text in SQL. With the encoding SQL_ASCII, they may not be UTF-8: the server would return an
error in place of the text."""

T = TypeVar("T")

Row = tuple[Any, ...]


def ask_rows(
    connection: Connection, sql: LiteralString, source: str, parameters: Sequence[object] | None = None
) -> Fact[tuple[Row, ...]]:
    """Run a query. The result is unknown without the privilege, without the object, or after a timeout.

    Raises: ConnectionFailedError if the connection is lost; ServerError for other errors.
    """
    try:
        return Fact(tuple(connection.execute(sql, parameters).fetchall()), source)
    except errors.InsufficientPrivilege as error:
        return Fact(Unknown(_message(error)), source)
    except (errors.UndefinedFunction, errors.UndefinedTable, errors.UndefinedColumn) as error:
        return Fact(Unknown(f"not available on this server: {_message(error)}"), source)
    except (errors.QueryCanceled, errors.LockNotAvailable) as error:
        return Fact(Unknown(_message(error)), source)
    except psycopg.Error as error:
        raise statement_failed(error, is_closed=connection.closed) from error


def ask(connection: Connection, sql: LiteralString, kind: type[T], source: str) -> Fact[T]:
    """Query one value of a Python type. NULL and an empty result are unknown.

    Raises: ConnectionFailedError if the connection is lost; ServerError for a value of another type.
    """
    rows = ask_rows(connection, sql, source)
    if isinstance(rows.value, Unknown):
        return Fact(rows.value, source)
    value = rows.value[0][0] if rows.value else None
    if value is None:
        return Fact(Unknown("the server returned no value"), source)
    if not isinstance(value, kind):
        raise ServerError(f"{source} returned {type(value).__name__}, expected {kind.__name__}")
    return Fact(value, source)


def require(connection: Connection, sql: LiteralString, kind: type[T], source: str) -> T:
    """Query a value that every role can see on every server.

    Raises: ServerError if the server does not return it; ConnectionFailedError.
    """
    fact = ask(connection, sql, kind, source)
    if isinstance(fact.value, Unknown):
        raise ServerError(f"the server does not report {source}", detail=fact.value.reason)
    return fact.value


def text_of(data: bytes) -> str | None:
    """Return the text of a value of ``AS_BYTES``; None if it is not UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _message(error: psycopg.Error) -> str:
    """Return the server's primary message, without detail and context."""
    return error.diag.message_primary or str(error)
