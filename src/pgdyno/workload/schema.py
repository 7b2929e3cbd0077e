"""The tables used by a workload's statements, and the types of the statements' parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import psycopg

from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import statement_failed
from pgdyno.postgres.connection.privileges import require_powerless
from pgdyno.postgres.inspection.columns import infer_types, read_columns, read_identity, read_search_path
from pgdyno.workload.capture.statements import TransactionPart, look_at


@dataclass(frozen=True)
class Schema:
    """A database's identity and columns, and the role's search path.

    ``types`` has the types of parameters by statement, or the server's error message.
    """

    server_version: str
    cluster: int
    database: str
    search_path: str
    columns: tuple[Column, ...]
    types: Mapping[int, tuple[str, ...] | str]


def require_parsing(connection: Connection) -> None:
    """Raise RefusedError for a role that must not parse other users' statements."""
    require_powerless(connection, "statements would be parsed")


def read_schema(connection: Connection, texts: Mapping[int, str]) -> Schema:
    """Return the schema used by statements. Raises: ServerError, ConnectionFailedError."""
    cluster, database = read_identity(connection)
    search_path = read_search_path(connection)
    return Schema(
        server_version=connection.info.parameter_status("server_version") or "",
        cluster=cluster,
        database=database,
        search_path=search_path,
        columns=read_columns(connection, search_path),
        types=types_of(connection, {one: sql for one, sql in texts.items() if _is_query(sql)}),
    )


def types_of(connection: Connection, texts: Mapping[int, str]) -> dict[int, tuple[str, ...] | str]:
    """Return the types that the server infers for statements' parameters, or its error message.

    Raises: ConnectionFailedError.
    """
    search_path = read_search_path(connection)
    return {one: _types(connection, sql, search_path) for one, sql in texts.items()}


def _types(connection: Connection, sql: str, search_path: str) -> tuple[str, ...] | str:
    try:
        return infer_types(connection, sql, search_path)
    except psycopg.Error as error:
        if connection.closed:
            raise statement_failed(error, is_closed=True) from error
        return error.diag.message_primary or str(error)


def _is_query(sql: str) -> bool:
    look = look_at(sql)
    return not isinstance(look, str) and look.kind is TransactionPart.QUERY
