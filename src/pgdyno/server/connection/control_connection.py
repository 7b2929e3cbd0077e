"""Connection that no server can hold up, or fill the memory of.

A server may be broken, hostile, or no PostgreSQL at all. ``statement_timeout`` is kept by the server; this
limits how long an answer is waited for, how much memory it takes, and how many values are taken from it. A
connection over its limits is closed: nobody knows what comes next on it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, Self, TypeVar

import psycopg

ANSWER_LIMIT_S = 15.0  # more than the 10 s after which a server ends a statement of pgdyno's own
LONG_LIMIT_S = 6 * 3600.0  # of what takes its time: a checkpoint, the copy of a database
MEMORY_LIMIT_BYTES = 128 << 20  # arbitrary; pg_settings takes a quarter of 1 MB, a large plan some MB
_FIRST_READS = 10  # of at most some MB together; until then, memory is not this answer's but other threads'
MOST_VALUES = 1_000_000  # arbitrary; each takes about 100 bytes in Python, pg_settings has 5,000 to 10,000

_STATM = Path("/proc/self/statm")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_UNREADABLE = (ValueError, ArithmeticError, RecursionError)
"""What psycopg's loaders raise for text that is no value of the type that the server has named."""

T = TypeVar("T")
Row = tuple[Any, ...]


class ControlCursor(psycopg.Cursor[Row]):
    """A cursor with a limit of values, and an error of psycopg's for each unreadable one."""

    def execute(self, *arguments: Any, **options: Any) -> Self:
        """Run a statement. Raises: psycopg.OperationalError for an answer with too many values."""
        super().execute(*arguments, **options)
        result = self.pgresult
        if result is not None and result.ntuples * result.nfields > MOST_VALUES:
            self.connection.close()
            raise psycopg.OperationalError(
                f"the server answered with {result.ntuples} rows, more than any answer has"
            )
        return self

    def fetchone(self) -> Row | None:
        """Return the next row. Raises: psycopg.DataError for one that cannot be read."""
        try:
            return super().fetchone()
        except _UNREADABLE as error:
            raise _unreadable(error) from error

    def fetchall(self) -> list[Row]:
        """Return all rows. Raises: psycopg.DataError for one that cannot be read."""
        try:
            return super().fetchall()
        except _UNREADABLE as error:
            raise _unreadable(error) from error

    def __next__(self) -> Row:
        """Return the next row. Raises: psycopg.DataError for one that cannot be read."""
        try:
            return super().__next__()
        except _UNREADABLE as error:
            raise _unreadable(error) from error


class ControlConnection(psycopg.Connection[Row]):
    """A connection with limits of its own. ``answer_limit_s`` holds for each statement that follows."""

    answer_limit_s: float = ANSWER_LIMIT_S

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Take the connection that libpq has made."""
        super().__init__(*arguments, **options)
        self.cursor_factory = ControlCursor

    def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **options: Any) -> T:
        """Wait for an answer. Raises: psycopg.OperationalError if it takes too long or too much memory."""
        return super().wait(self._limited(gen), *arguments, **options)

    def _limited(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        """Look at the limits each time when something has arrived, or nothing for a tenth of a second."""
        limit_s = self.answer_limit_s
        deadline_s = time.monotonic() + limit_s
        limit_bytes = _resident_bytes() + MEMORY_LIMIT_BYTES
        reads = 0
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                wanted = gen.send(ready)
                reads += bool(ready)
                if time.monotonic() > deadline_s:
                    raise self._over(f"the server did not complete an answer within {limit_s:.0f} s")
                if reads > _FIRST_READS and _resident_bytes() > limit_bytes:
                    raise self._over("the server's answer takes too much memory")
        except StopIteration as done:
            answer: T = done.value
            return answer

    def _over(self, why: str) -> psycopg.OperationalError:
        self.pgconn.finish()
        return psycopg.OperationalError(why)


def _resident_bytes() -> int:
    return int(_STATM.read_bytes().split()[1]) * _PAGE_BYTES


def _unreadable(error: Exception) -> psycopg.DataError:
    return psycopg.DataError(f"the server answered what cannot be read: {str(error)[:200]}")
