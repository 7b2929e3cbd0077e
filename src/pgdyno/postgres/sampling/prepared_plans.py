"""Read the custom plans, the generic plan and the results' checksums of a prepared statement.

Each statement is prepared in a READ ONLY transaction that is rolled back. Statements that only read are run
(EXPLAIN ANALYZE); those that write are only planned. EXPLAIN EXECUTE shows the generic plan in every
supported version; EXPLAIN (GENERIC_PLAN) requires 16.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any, LiteralString, TypeAlias

import psycopg
from psycopg import sql

from pgdyno.base.errors import ServerError
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.control_connection import STATEMENT_TIMEOUT_S, look, parameter_types
from pgdyno.postgres.plan_document import explained
from pgdyno.postgres.statements import PreparedStatement

Document: TypeAlias = Mapping[str, Any]

_NAME = sql.Identifier("pgdyno_planned")
_FEWEST = 6  # at the sixth, the server decides on the generic plan (plancache.c, choose_custom_plan)
_MOST = 12  # arbitrary: enough values to detect different plans, in a few milliseconds per statement
_PLANNED: LiteralString = "EXPLAIN (FORMAT JSON, VERBOSE, SUMMARY) "
_RUN: LiteralString = "EXPLAIN (ANALYZE, TIMING OFF, BUFFERS, FORMAT JSON, VERBOSE, SUMMARY) "
_IS_KEPT: LiteralString = """
    SELECT generic_plans OPERATOR(pg_catalog.>) 0 FROM pg_catalog.pg_prepared_statements
     WHERE name OPERATOR(pg_catalog.=) 'pgdyno_planned'"""
_PARTITIONED: LiteralString = """
    SELECT pg_catalog.count(*) OPERATOR(pg_catalog.>) 0
      FROM pg_catalog.pg_class c
      JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
     WHERE pg_catalog.concat_ws('.', n.nspname, c.relname) OPERATOR(pg_catalog.=) ANY (%s)
       AND (c.relispartition OR c.relkind OPERATOR(pg_catalog.=) 'p')"""


_ASKED = sql.Identifier("pgdyno_asked")
# The last digits of floating-point sums depend on row order: 9 of 15 digits are compared.
_SETTINGS = {"extra_float_digits": "-6", "statement_timeout": f"{STATEMENT_TIMEOUT_S}s"}
_HEAD = (
    "SELECT pg_catalog.count(*), pg_catalog.sum(pg_catalog.hashtextextended(answer::pg_catalog.text, 0)) "
    "FROM ("
)
_TAIL = ") AS answer"


@dataclass(frozen=True)
class ExplainedStatement:
    """EXPLAIN output of one statement as JSON, for the same values with custom and generic plans."""

    customs: tuple[Document, ...]
    generics: tuple[Document, ...]
    is_kept: bool  # with plan_cache_mode = auto, the server keeps the generic plan
    has_partitions: bool


@dataclass(frozen=True)
class ResultChecksum:
    """The rows that a call returned: their number, and the sum of their hashes."""

    rows: int
    checksum: int


def explain_prepared(
    connection: Connection, statement: PreparedStatement, *, is_run: bool
) -> ExplainedStatement:
    """Return a statement's custom and generic plans, from running it if ``is_run``. Nothing is written.

    Raises: ServerError with the server's message if it cannot be prepared, planned or run.
    """
    explain = _RUN if is_run else _PLANNED
    with _prepared(connection, statement):
        count = max(_FEWEST, min(len(statement.samples), _MOST))
        samples = tuple(islice(cycle(statement.samples), count))
        customs = _explain(connection, explain, samples, "force_custom_plan")
        _explain(connection, _PLANNED, samples[:1], "auto")
        is_kept = bool(_value(connection, _IS_KEPT))
        generics = _explain(connection, explain, samples, "force_generic_plan")
        has_partitions = _has_partitions(connection, generics[0])
    return ExplainedStatement(customs, generics, is_kept, has_partitions)


def run_prepared(
    connection: Connection, statement: PreparedStatement, most: int, *, is_generic: bool
) -> tuple[Document, ...]:
    """Run a statement that only reads with its first ``most`` samples (EXPLAIN ANALYZE); return the plans.

    Raises: ServerError with the server's message if it cannot be prepared or run.
    """
    with _prepared(connection, statement):
        mode: LiteralString = "force_generic_plan" if is_generic else "force_custom_plan"
        return _explain(connection, _RUN, statement.samples[:most], mode)


def explain_unknown(connection: Connection, text: str) -> Document:
    """Return the generic plan of a statement with unknown values, in a transaction that is rolled back.

    Names are searched in the role's own path, and the server infers the types of parameters. The prepared
    statement ends with the transaction: a pooler may assign the session to an application next.
    Raises: ServerError with the server's message.
    """
    limit = {"statement_timeout": f"{STATEMENT_TIMEOUT_S}s", "search_path": None}
    with _errors_named(text), look(connection, limit):
        nulls = (None,) * len(parameter_types(connection, text.encode()))
        _prepare(connection, PreparedStatement("", text, (), (), 0.0))
        try:
            with look(connection, limit):
                [document] = _explain(connection, _PLANNED, (nulls,), "force_generic_plan")
        finally:
            if not connection.closed:
                connection.execute(sql.SQL("DEALLOCATE {}").format(_NAME))
    return document


@contextmanager
def _errors_named(text: str) -> Iterator[None]:
    """Raise ServerError with the statement for errors in the block."""
    try:
        yield
    except psycopg.Error as error:
        message = error.diag.message_primary or str(error).strip()
        raise ServerError(f'could not plan "{text.strip()}"', detail=message) from error


@contextmanager
def _prepared(connection: Connection, statement: PreparedStatement) -> Iterator[None]:
    """Provide a transaction with the prepared statement; both end with the block. Raises: ServerError."""
    limit = {"statement_timeout": f"{STATEMENT_TIMEOUT_S}s"}
    with _errors_named(statement.sql), _deallocated(connection, _NAME), look(connection, limit):
        _prepare(connection, statement)
        yield


def _prepare(connection: Connection, statement: PreparedStatement) -> None:
    types = [_type(connection, oid) for oid in statement.parameter_types]
    listed = sql.SQL("({})").format(sql.SQL(", ").join(types)) if types else sql.SQL("")
    text = statement.sql.strip().rstrip(";").encode()
    head = sql.SQL("PREPARE {}{} AS ").format(_NAME, listed).as_bytes(connection)
    connection.execute(head + text, prepare=False)


@contextmanager
def _deallocated(connection: Connection, name: sql.Identifier) -> Iterator[None]:
    """Deallocate a prepared statement after the block, if it exists: a rollback does not."""
    try:
        yield
    finally:
        if not connection.closed:
            with suppress(psycopg.errors.InvalidSqlStatementName):  # the PREPARE failed
                connection.execute(sql.SQL("DEALLOCATE {}").format(name))


def _type(connection: Connection, oid: int) -> sql.SQL:
    row = connection.execute("SELECT pg_catalog.format_type(%s::pg_catalog.oid, NULL)", (oid,)).fetchone()
    return sql.SQL(row[0] if row else "unknown")  # from the server, already quoted


def _explain(
    connection: Connection,
    explain: LiteralString,
    samples: tuple[tuple[str | None, ...], ...],
    mode: LiteralString,
) -> tuple[Document, ...]:
    connection.execute(sql.SQL("SET LOCAL plan_cache_mode = {}").format(sql.SQL(mode)))
    documents = []
    for values in samples:
        listed = sql.SQL("({})").format(sql.SQL(", ").join(map(sql.Literal, values)))
        execute = sql.SQL(explain + "EXECUTE {}{}").format(_NAME, listed if values else sql.SQL(""))
        row = connection.execute(execute, prepare=False).fetchone()
        documents.append(explained(row[0] if row else None))
    return tuple(documents)


def _has_partitions(connection: Connection, document: Document) -> bool:
    """Whether a plan reads a partition, writes to a partitioned table, or has pruned partitions."""
    nodes = tuple(_nodes(document["Plan"]))
    names = [f"{node['Schema']}.{node['Relation Name']}" for node in nodes if "Relation Name" in node]
    return any("Subplans Removed" in node for node in nodes) or bool(
        _value(connection, _PARTITIONED, (names,))
    )


def _nodes(node: Document) -> Iterator[Document]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def _value(connection: Connection, query: LiteralString, parameters: tuple[object, ...] = ()) -> Any:
    row = connection.execute(query, parameters).fetchone()
    return row[0] if row else None


def result_checksums(
    connection: Connection, statement: PreparedStatement, most: int
) -> tuple[ResultChecksum | None, ...]:
    """Return the results for a statement's first ``most`` samples; None after an error or a timeout.

    The server computes the row count and the sum of the rows' hashes, so the rows' order does not matter and
    results may be large.
    Raises: ServerError if the session is lost.
    """
    return tuple(_answers(connection, statement, list(islice(statement.samples, most))))


def _answers(
    connection: Connection, statement: PreparedStatement, samples: Sequence[Sequence[str | None]]
) -> Iterator[ResultChecksum | None]:
    text = f"{_HEAD}{statement.sql.strip().rstrip(';')}{_TAIL}".encode()
    prepare = sql.SQL("PREPARE {} AS ").format(_ASKED).as_bytes(connection) + text
    for values in samples:
        try:
            yield _answer(connection, prepare, values)
        except psycopg.Error as error:
            if connection.closed:
                raise ServerError("the session that compares results was lost") from error
            yield None


def _answer(connection: Connection, prepare: bytes, values: Sequence[str | None]) -> ResultChecksum:
    listed = sql.SQL("({})").format(sql.SQL(", ").join(map(sql.Literal, values)))
    execute = sql.SQL("EXECUTE {}{}").format(_ASKED, listed if values else sql.SQL(""))
    with _deallocated(connection, _ASKED), look(connection, _SETTINGS):
        connection.execute(prepare, prepare=False)
        [[rows, checksum]] = connection.execute(execute, prepare=False).fetchall()
    return ResultChecksum(int(rows), int(checksum or 0))
