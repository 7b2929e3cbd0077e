"""Execute queries one at a time on a dedicated connection, and time each.

For queries that take milliseconds to minutes and return few rows: the client's own time is negligible then.
For transactions, use pgdyno-driver.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self

import psycopg

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.load._contract import Target

LIMIT_S = 3600.0  # of a statement, if the server sets none; arbitrary: longer than users wait
_HINTS = {
    "57014": "raise statement_timeout; where the server sets none, a statement may take an hour",
    "53400": "raise temp_file_limit, or work_mem so that less is written to temporary files",
    "53200": "lower work_mem, or max_parallel_workers_per_gather: each worker has its own",
}
"""Hints by SQLSTATE: query_canceled, configuration_limit_exceeded, out_of_memory."""

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Executed:
    """One execution, timed from sending the query until the last row arrived."""

    elapsed_s: float
    rows: Rows


@dataclass(frozen=True)
class QuerySession:
    """A connection that executes queries for a pass."""

    connection: psycopg.Connection

    @classmethod
    @contextmanager
    def open(cls, target: Target) -> Iterator[Self]:
        """Provide a session, closed at the end. Raises: GeneratorFailedError."""
        with _named("could not connect"):
            connection = psycopg.connect(
                host=target.host,
                port=target.port,
                user=target.user,
                dbname=target.database,
                client_encoding="UTF8",  # with SQL_ASCII, the default of such databases, texts are bytes
                autocommit=True,
            )
        with connection:
            session = cls(connection)
            with _named("could not set statement_timeout"):
                if connection.execute("SHOW statement_timeout").fetchone() == ("0",):
                    connection.execute(f"SET statement_timeout = {int(LIMIT_S * 1000)}".encode())
            yield session

    def query(self, sql: str) -> Executed:
        """Execute a query and fetch its rows. Raises: GeneratorFailedError with the server's message."""
        return self._timed(lambda: self.connection.execute(sql.encode()).fetchall())

    def copy_in(self, copies: Sequence[tuple[str, bytes]]) -> Executed:
        """Execute COPY … FROM STDIN statements with their rows, in one transaction."""
        return self._timed(lambda: self._copy_in(copies))

    def delete(self, statements: Sequence[str], keys: Sequence[int]) -> Executed:
        """Execute statements with a list of keys as their parameter, in one transaction."""
        return self._timed(lambda: self._delete(statements, keys))

    @property
    def pid(self) -> int:
        """The process id of the server's backend."""
        return self.connection.info.backend_pid

    def report(self) -> None:
        """Flush the statistics of executed queries, which the backend may hold for a second.

        Requires PostgreSQL 15. Raises: GeneratorFailedError.
        """
        self.query("SELECT pg_catalog.pg_stat_force_next_flush()")

    def cancel(self) -> None:
        """Cancel the running query from another thread; a lost connection is ignored."""
        with suppress(psycopg.OperationalError):
            self.connection.cancel_safe()

    def _copy_in(self, copies: Sequence[tuple[str, bytes]]) -> Rows:
        with self.connection.transaction(), self.connection.cursor() as cursor:
            for statement, rows in copies:
                with cursor.copy(statement.encode()) as copy:
                    copy.write(rows)
        return []

    def _delete(self, statements: Sequence[str], keys: Sequence[int]) -> Rows:
        with self.connection.transaction():
            for statement in statements:
                self.connection.execute(statement.encode(), (list(keys),))
        return []

    def _timed(self, execute: Callable[[], Rows]) -> Executed:
        with _named(None):
            began_ns = time.perf_counter_ns()
            rows = execute()
            return Executed((time.perf_counter_ns() - began_ns) / 1e9, rows)


@contextmanager
def _named(failure: str | None) -> Iterator[None]:
    """Raise a server error as GeneratorFailedError.

    ``failure`` describes the failed action; None: only the server's message is used.
    """
    try:
        yield
    except psycopg.Error as error:
        message = error.diag.message_primary or str(error).strip()
        code = f" (SQLSTATE {error.sqlstate})" if error.sqlstate else ""
        raise GeneratorFailedError(
            f"{failure}: {message}{code}" if failure else f"{message}{code}",
            detail=error.diag.message_detail,
            hint=_HINTS.get(error.sqlstate or "") or error.diag.message_hint,
        ) from error
