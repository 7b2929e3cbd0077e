"""The tables used by a workload's statements, and the types of the statements' parameters."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import psycopg

from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import statement_failed
from pgdyno.postgres.connection.privileges import require_powerless
from pgdyno.postgres.inspection.columns import infer_types, read_columns, read_identity, read_search_path
from pgdyno.postgres.inspection.named_objects import read_policies, read_sequences, read_writing_functions
from pgdyno.workload.capture.arguments import NamedObjects, with_policies
from pgdyno.workload.capture.casts import assumed_types, casts_of
from pgdyno.workload.capture.literals import in_place_of_parameters
from pgdyno.workload.capture.statements import TransactionPart, look_at
from pgdyno.workload.capture.workload import Observation

_UNTYPED = re.compile(r"\$(\d+)")  # in the error "could not determine data type of parameter $1"
_TEXT = "text"
_LOCKED = "a table in it was locked"
_LONGEST_WAIT_S = 0.5  # for the locked tables of one statement; arbitrary


@dataclass
class _Patience:
    """The time left for waits for locked tables, of all statements together."""

    left_s: float = 2.0

    def types(self, connection: Connection, sql: str, search_path: str) -> tuple[str, ...] | str:
        """Return the types of a statement's parameters, or the server's error message."""
        began_s = time.monotonic()
        try:
            return infer_types(connection, sql, search_path, min(self.left_s, _LONGEST_WAIT_S))
        except psycopg.Error as error:
            if connection.closed:
                raise statement_failed(error, is_closed=True) from error
            if isinstance(error, psycopg.errors.LockNotAvailable | psycopg.errors.QueryCanceled):
                self.left_s = max(0.0, self.left_s - (time.monotonic() - began_s))
            if isinstance(error, psycopg.errors.LockNotAvailable):
                return _LOCKED
            return error.diag.message_primary or str(error)


@dataclass(frozen=True)
class Schema:
    """A database's identity and columns, and the role's search path.

    ``types`` has the types of parameters by statement, or the server's error message. ``writing`` are the
    names of functions that may write.
    """

    server_version: str
    cluster: int
    database: str
    search_path: str
    columns: tuple[Column, ...]
    types: Mapping[int, tuple[str, ...] | str]
    named: NamedObjects
    writing: frozenset[str]


def require_parsing(connection: Connection) -> None:
    """Raise RefusedError for a role that must not parse other users' statements."""
    require_powerless(connection, "statements would be parsed")


def read_schema(connection: Connection, texts: Mapping[int, str]) -> Schema:
    """Return the schema used by statements. Raises: ServerError, ConnectionFailedError."""
    cluster, database = read_identity(connection)
    search_path = read_search_path(connection)
    columns = read_columns(connection, search_path, texts.values())
    named = NamedObjects(sequences=read_sequences(connection))
    return Schema(
        server_version=connection.info.parameter_status("server_version") or "",
        cluster=cluster,
        database=database,
        search_path=search_path,
        columns=columns,
        types=types_of(connection, {one: sql for one, sql in texts.items() if _is_query(sql)}),
        named=with_policies(named, read_policies(connection), columns),
        writing=read_writing_functions(connection),
    )


def types_of(connection: Connection, texts: Mapping[int, str]) -> dict[int, tuple[str, ...] | str]:
    """Return the types that the server infers for statements' parameters, or its error message.

    Raises: ConnectionFailedError.
    """
    search_path, patience = read_search_path(connection), _Patience()
    return {one: patience.types(connection, sql, search_path) for one, sql in texts.items()}


def with_casts(
    connection: Connection, observed: Observation, known: Mapping[int, Mapping[int, str]] | None = None
) -> Observation:
    """Return statements with casts for parameters that were numbers and have a different type.

    ``known`` has the types of these parameters, by statement; None: they are assumed, with a note. Parameters
    of types that the server cannot determine are texts. Raises: ConnectionFailedError.
    """
    search_path, columns, patience = read_search_path(connection), observed.columns, _Patience()
    texts, types, notes = dict(observed.texts), dict(observed.types), dict[int, str]()
    for one, its in observed.types.items():
        if one not in observed.counted.seen or its == _LOCKED:
            continue
        sql = texts[one]
        numbers = assumed_types(sql, its, columns) if known is None else known[one]
        casts = casts_of(sql, its, numbers, columns, observed.counted.seen[one])
        found = _prepared(sql, its, casts, lambda sql: patience.types(connection, sql, search_path))
        if casts and not isinstance(found, str):
            texts[one], types[one] = _cast(sql, casts), found
            listed = ", ".join(f"${number} {type_}" for number, type_ in sorted(casts.items()))
            notes[one] = f"assumed types of parameters: {listed}"
    return replace(observed, texts=texts, types=types, assumed=notes if known is None else {})


def _prepared(
    sql: str,
    types: tuple[str, ...] | str,
    casts: dict[int, str],
    infer: Callable[[str], tuple[str, ...] | str],
) -> tuple[str, ...] | str:
    """Return the types of a statement's parameters with ``casts``, to which texts are added, or the error."""
    if casts:
        types = infer(_cast(sql, casts))
    untyped = _UNTYPED.search(types) if isinstance(types, str) else None
    if untyped is None or int(untyped[1]) in casts:
        return types
    casts[int(untyped[1])] = _TEXT
    return _prepared(sql, types, casts, infer)


def _cast(sql: str, casts: Mapping[int, str]) -> str:
    return in_place_of_parameters(sql, {one: f"${one}::{type_}" for one, type_ in casts.items()})


def _is_query(sql: str) -> bool:
    look = look_at(sql)
    return not isinstance(look, str) and look.kind is TransactionPart.QUERY
