"""Control connection with client-side limits on time and memory.

A server may be broken, hostile, or not PostgreSQL at all, and ``statement_timeout`` depends on the server.
This module limits how long the client waits for a response, how much memory the response takes, and how many
values it has. A connection that exceeds a limit is closed, because its protocol state is unknown.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any, LiteralString, NamedTuple, Self, TypeAlias, TypeVar

import psycopg
from psycopg import generators, sql
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

ANSWER_LIMIT_S = 15.0  # more than the 10 s statement_timeout of pgdyno's statements
LONG_LIMIT_S = 6 * 3600.0  # for long operations: a checkpoint, the copy of a database
_CHECK_EVERY_S = 15.0  # interval of checks whether a long statement is still running
MEMORY_LIMIT_BYTES = 64 << 20  # arbitrary; pg_settings takes a quarter of 1 MB, a large plan some MB
MOST_READS = 20_000  # arbitrary; a response within the memory limit takes a few thousand
_MOST_READS_WITHOUT_ROWS = 100  # notices, changed parameters
_FIRST_READS = 10  # a few MB in total; memory growth up to then is due to other threads, not this response
MOST_VALUES = 1_000_000  # arbitrary; each takes about 100 bytes in Python, pg_settings has 5,000 to 10,000

STATEMENT_TIMEOUT_S = (
    10  # catalog queries take milliseconds; counting the files of a huge cluster may take longer
)
Settings: TypeAlias = Mapping[str, str | None]
READING: Settings = {
    "statement_timeout": f"{STATEMENT_TIMEOUT_S}s",
    "transaction_timeout": "0",
    "lock_timeout": f"{STATEMENT_TIMEOUT_S}s",
    "search_path": "",
    "datestyle": "ISO",  # output style only; the field order for input stays the database's
    "extra_float_digits": "1",
    "quote_all_identifiers": "off",
    "exit_on_error": "off",  # queries without privilege are expected to fail
}
"""Settings of an inspecting transaction; they override the database owner's."""

OWN_SESSION: Settings = {
    **READING,
    "idle_session_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}
"""Settings of a session that is not shared through a pooler."""

_SINCE = {"idle_session_timeout": 140_000, "transaction_timeout": 170_000}
"""Minimum server versions of settings."""

# Arbitrary: if pgdyno stalls between two statements, it must not occupy a pooler's session.
_BOUNDED: Settings = {"idle_in_transaction_session_timeout": "60s"}
_WHOLE = b"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; ", b"ROLLBACK"
_PART = b"SAVEPOINT pgdyno_look; ", b"ROLLBACK TO SAVEPOINT pgdyno_look; RELEASE SAVEPOINT pgdyno_look"
_BETWEEN_STATEMENTS = (TransactionStatus.INTRANS, TransactionStatus.INERROR)
_TOO_LARGE = "the server's response takes too much memory"
_AT_WORK = """
SELECT 1 FROM pg_catalog.pg_stat_activity
WHERE pid OPERATOR(pg_catalog.=) %s AND state OPERATOR(pg_catalog.=) 'active'
"""

_STATM = Path("/proc/self/statm")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_UNREADABLE = (ValueError, ArithmeticError, RecursionError)
"""Raised by psycopg's loaders for text that is not a value of the reported type."""

T = TypeVar("T")
Row = tuple[Any, ...]


class ControlCursor(psycopg.Cursor[Row]):
    """A cursor that limits the number of values, and raises psycopg.DataError for unreadable ones."""

    def execute(self, *arguments: Any, **options: Any) -> Self:
        """Run a statement, or several of which the last one's result is kept.

        Raises: psycopg.OperationalError for a result with too many values.
        """
        super().execute(*arguments, **options)
        while self.nextset():
            pass
        result = self.pgresult
        if result is not None and result.ntuples * result.nfields > MOST_VALUES:
            self.connection.close()
            raise psycopg.OperationalError(
                f"the server returned {result.ntuples} rows, more than any expected result has"
            )
        return self

    def fetchone(self) -> Row | None:
        """Return the next row. Raises: psycopg.DataError if it is unreadable."""
        try:
            return super().fetchone()
        except _UNREADABLE as error:
            raise _unreadable(error) from error

    def fetchall(self) -> list[Row]:
        """Return all rows. Raises: psycopg.DataError if one is unreadable."""
        try:
            return super().fetchall()
        except _UNREADABLE as error:
            raise _unreadable(error) from error

    def __next__(self) -> Row:
        """Return the next row. Raises: psycopg.DataError if it is unreadable."""
        try:
            return super().__next__()
        except _UNREADABLE as error:
            raise _unreadable(error) from error


class ControlConnection(psycopg.Connection[Row]):
    """A connection with client-side limits. ``answer_limit_s`` applies to each following statement."""

    answer_limit_s: float = ANSWER_LIMIT_S

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Wrap a connection that libpq has established."""
        super().__init__(*arguments, **options)
        self.cursor_factory = ControlCursor
        self._is_at_work: Callable[[], bool] | None = None

    @contextmanager
    def waiting_for_hours(self, connect: Callable[[], ControlConnection]) -> Iterator[None]:
        """Wait for statements in the block, which return no rows, as long as the server executes them.

        ``connect`` opens a second connection for periodic checks that the server still executes the
        statement: its response may have been lost.
        """
        limit_s, pid = self.answer_limit_s, self.execute("SELECT pg_catalog.pg_backend_pid()").fetchone()
        self.answer_limit_s = LONG_LIMIT_S
        self._is_at_work = partial(_is_at_work, connect, pid)
        try:
            yield
        finally:
            self.answer_limit_s = limit_s
            self._is_at_work = None

    def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **options: Any) -> T:
        """Wait for a response. Raises: psycopg.OperationalError if it takes too long or too much memory."""
        return super().wait(self._limited(gen), *arguments, **options)

    def _limited(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        """Check the limits whenever data has arrived, and after each 0.1 s without data."""
        limits = _Limits(self.answer_limit_s, self._is_at_work)
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                reserved_bytes = _memory_bytes().reserved
                wanted = gen.send(ready)
                why = limits.exceeded(has_read=bool(ready), reserved_before_bytes=reserved_bytes)
                if why is not None:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(why)
        except StopIteration as done:
            answer: T = done.value
            return answer


class ReadingConnection(ControlConnection):
    """A connection that leaves its session unchanged: a pooler may assign the session to an application next.

    Each statement is a separate READ ONLY transaction with ``settings``. They are sent with the statement in
    one message and end with it, even if pgdyno is killed. The session's own search path, which may contain
    malicious operators, is never used for pgdyno's statements.
    """

    settings: Settings = READING

    def execute(
        self, query: Any, params: Any = None, *, prepare: bool | None = None, binary: bool = False
    ) -> psycopg.Cursor[Row]:
        """Run a statement; outside ``look``, its parameters are interpolated by the client."""
        if self.info.transaction_status != TransactionStatus.IDLE:
            return super().execute(query, params, prepare=prepare, binary=binary)
        text = psycopg.ClientCursor(self).mogrify(query, params).encode(self.info.encoding)
        return super().execute(self._first + b"; " + text)

    @cached_property
    def _first(self) -> bytes:
        return _setting(self, self.settings)


@contextmanager
def look(connection: psycopg.Connection[Row], settings: Settings) -> Iterator[None]:
    """Run the block's statements in one READ ONLY transaction, or subtransaction, that is rolled back.

    ``settings`` override the connection's own; None resets a setting to the server's or the role's value.
    """
    own = connection.settings if isinstance(connection, ReadingConnection) else {}
    is_part = connection.info.transaction_status in _BETWEEN_STATEMENTS
    begin, end = _PART if is_part else _WHOLE
    begin += _setting(connection, {**_BOUNDED, **own, **settings})
    psycopg.Connection.execute(connection, begin, prepare=False)
    try:
        yield
    finally:
        if connection.info.transaction_status in _BETWEEN_STATEMENTS:
            psycopg.Connection.execute(connection, end, prepare=False)
        else:
            connection.close()  # its protocol state is unknown


@contextmanager
def unless_locked(connection: psycopg.Connection[Row]) -> Iterator[None]:
    """Run statements in a ``look``, and leave the block silently if one waits a second for a lock."""
    with suppress(psycopg.errors.LockNotAvailable), look(connection, {**READING, "lock_timeout": "1s"}):
        yield


def _setting(connection: psycopg.Connection[Row], settings: Settings) -> bytes:
    """Return a statement equivalent to SET LOCAL for each; NULL acts as SET LOCAL … TO DEFAULT."""
    one = sql.SQL("pg_catalog.set_config({}, {}, true)")
    each = [one.format(*pair) for pair in _known(connection, {"transaction_read_only": "on", **settings})]
    return sql.SQL("SELECT {}").format(sql.SQL(", ").join(each)).as_bytes(connection)


def set_for_session(connection: psycopg.Connection[Row], settings: Settings) -> None:
    """Set the settings that the server version has, for the session. Raises: psycopg.Error."""
    psycopg.Connection.execute(connection, _setting_alone(connection, "SET", settings), prepare=False)


def server_pid(connection: psycopg.Connection[Row]) -> int:
    """Return the backend's process id, regardless of timeouts set for its database or role.

    The timeouts are overridden by statements that need no planning, in the same message, and only for it.
    Raises: psycopg.Error.
    """
    limits = {"transaction_timeout": "0", "statement_timeout": READING["statement_timeout"]}
    query = _setting_alone(connection, "SET LOCAL", limits) + b"; SELECT pg_catalog.pg_backend_pid()"
    [[pid]] = psycopg.Connection.execute(connection, query, prepare=False).fetchall()
    return int(pid)


def _setting_alone(connection: psycopg.Connection[Row], command: LiteralString, settings: Settings) -> bytes:
    """Return a list of statements that set one setting each."""
    one = sql.SQL(command + " {} TO {}")
    each = [one.format(sql.Identifier(name), value) for name, value in _known(connection, settings)]
    return sql.SQL("; ").join(each).as_bytes(connection)


def _known(connection: psycopg.Connection[Row], settings: Settings) -> list[tuple[str, str | None]]:
    version = connection.info.server_version
    return [(name, value) for name, value in settings.items() if version >= _SINCE.get(name, 0)]


def parameter_types(connection: psycopg.Connection[Row], statement: bytes) -> tuple[int, ...]:
    """Return the OIDs of the types that the server infers for a statement's parameters.

    It is parsed as the unnamed statement, which leaves nothing in the session, and never executed.
    Raises: psycopg.Error if the server cannot parse it.
    """

    def describe() -> Generator[Any, Any, PGresult]:
        connection.pgconn.send_prepare(b"", statement)
        yield from _one_result(connection)
        connection.pgconn.send_describe_prepared(b"")
        return (yield from _one_result(connection))

    with connection.lock:
        described = connection.wait(describe())
    return tuple(described.param_type(place) for place in range(described.nparams))


def _one_result(connection: psycopg.Connection[Row]) -> Generator[Any, Any, PGresult]:
    result: PGresult
    [result] = yield from generators.execute(connection.pgconn)
    if result.status != ExecStatus.COMMAND_OK:
        raise psycopg.errors.error_from_result(result, encoding=connection.info.encoding)
    return result


class _Limits:
    """The limits of one response. ``is_at_work``: without rows; it may take hours while this returns true."""

    def __init__(self, limit_s: float, is_at_work: Callable[[], bool] | None) -> None:
        self._limit_s, self._is_at_work = limit_s, is_at_work
        self._began_s = self._checked_s = time.monotonic()
        self._limit_bytes = _memory_bytes().resident + MEMORY_LIMIT_BYTES
        self._most_reads = MOST_READS if is_at_work is None else _MOST_READS_WITHOUT_ROWS
        self._reads = 0

    def exceeded(self, *, has_read: bool, reserved_before_bytes: int) -> str | None:
        """Return the limit that was exceeded by a read or by 0.1 s without one; None if none was."""
        self._reads += has_read
        now_s, memory = time.monotonic(), _memory_bytes()
        if now_s - self._began_s > self._limit_s:
            return f"the server did not complete a response within {self._limit_s:.0f} s"
        if self._reads > self._most_reads:
            return "the server keeps sending without completing a response"
        # libpq allocates a message's buffer once it knows the length, and may then read all of it at once.
        if memory.reserved - reserved_before_bytes > MEMORY_LIMIT_BYTES:
            return _TOO_LARGE
        if self._reads > _FIRST_READS and memory.resident > self._limit_bytes:
            return _TOO_LARGE
        if self._is_at_work is not None and now_s - self._checked_s > _CHECK_EVERY_S:
            if not self._is_at_work():
                return "the server finished a statement, but its response did not arrive"
            self._checked_s = time.monotonic()
        return None


class _Memory(NamedTuple):
    reserved: int
    resident: int


def _memory_bytes() -> _Memory:
    reserved, resident = _STATM.read_bytes().split()[:2]
    return _Memory(int(reserved) * _PAGE_BYTES, int(resident) * _PAGE_BYTES)


def _is_at_work(connect: Callable[[], ControlConnection], pid: Row | None) -> bool:
    with closing(connect()) as connection:
        return connection.execute(_AT_WORK, pid).fetchone() is not None


def _unreadable(error: Exception) -> psycopg.DataError:
    return psycopg.DataError(f"the server returned an unreadable value: {str(error)[:200]}")
