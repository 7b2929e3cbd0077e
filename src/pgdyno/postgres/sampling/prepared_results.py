"""Checksums of a prepared statement's results, computed by the server.

Each statement is prepared in a READ ONLY transaction that is rolled back. Only the row count and the sum of
the rows' hashes are transferred, so the rows' order does not matter and results may be large.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import psycopg
from psycopg import sql

from pgdyno.base.errors import ServerError
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.control_connection import STATEMENT_TIMEOUT_S, look
from pgdyno.postgres.sampling.prepared_plans import deallocated
from pgdyno.postgres.statements import PreparedStatement

_NAME = sql.Identifier("pgdyno_asked")
# The last digits of floating-point sums depend on row order: 9 of 15 digits are compared.
_SETTINGS = {"extra_float_digits": "-6", "statement_timeout": f"{STATEMENT_TIMEOUT_S}s"}
_HEAD = (
    "SELECT pg_catalog.count(*), pg_catalog.sum(pg_catalog.hashtextextended(answer::pg_catalog.text, 0)) "
    "FROM ("
)
_TAIL = ") AS answer"


@dataclass(frozen=True)
class ResultChecksum:
    """The rows that a call returned: their number, and the sum of their hashes."""

    rows: int
    checksum: int


def ask(connection: Connection, statement: PreparedStatement, most: int) -> tuple[ResultChecksum | None, ...]:
    """Return the results for a statement's first ``most`` samples; None after an error or a timeout.

    Raises: ServerError if the session is lost.
    """
    return tuple(_answers(connection, statement, list(islice(statement.samples, most))))


def _answers(
    connection: Connection, statement: PreparedStatement, samples: Sequence[Sequence[str | None]]
) -> Iterator[ResultChecksum | None]:
    text = f"{_HEAD}{statement.sql.strip().rstrip(';')}{_TAIL}".encode()
    prepare = sql.SQL("PREPARE {} AS ").format(_NAME).as_bytes(connection) + text
    for values in samples:
        try:
            yield _answer(connection, prepare, values)
        except psycopg.Error as error:
            if connection.closed:
                raise ServerError("the session that compares results was lost") from error
            yield None


def _answer(connection: Connection, prepare: bytes, values: Sequence[str | None]) -> ResultChecksum:
    listed = sql.SQL("({})").format(sql.SQL(", ").join(map(sql.Literal, values)))
    execute = sql.SQL("EXECUTE {}{}").format(_NAME, listed if values else sql.SQL(""))
    with deallocated(connection, _NAME), look(connection, _SETTINGS):
        connection.execute(prepare, prepare=False)
        [[rows, checksum]] = connection.execute(execute, prepare=False).fetchall()
    return ResultChecksum(int(rows), int(checksum or 0))
