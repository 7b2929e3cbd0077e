"""Sample the wait events of a server's processes, in a thread during a step.

Each sample is one query on a separate connection. It costs the server a few tenths of a millisecond, which
are part of the measurement. An error ends the sampling and is raised when the sampling is stopped.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from types import TracebackType
from typing import Any, LiteralString, Self

import psycopg

from pgdyno.base.errors import ServerError
from pgdyno.postgres.process.processes import children, resident_bytes
from pgdyno.postgres.waits import CPU, ActivitySample, Wait

# The checkpointer is idle in CheckpointerMain; otherwise it is writing or waiting to write.
_ACTIVITY: LiteralString = """
SELECT backend_type, wait_event_type, wait_event, {}, pg_catalog.count(*)
FROM pg_catalog.pg_stat_activity
WHERE pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()
  AND (state OPERATOR(pg_catalog.=) 'active'
       OR backend_type OPERATOR(pg_catalog.=) 'checkpointer'
          AND (wait_event OPERATOR(pg_catalog.<>) 'CheckpointerMain') IS NOT FALSE)
GROUP BY 1, 2, 3, 4
"""
_NO_STATEMENT: LiteralString = "NULL::pg_catalog.int8"
_WITH_STATEMENTS = 140_000
_BUSY = frozenset({"client backend", "parallel worker"})
_SAMPLES_PER_MEMORY = 4  # reading all processes' memory costs more than the query
_STOP_LIMIT_S = 10.0


class ActivitySampling:
    """A thread that takes samples during the ``with`` block.

    Only the thread uses the connection in the block. ``samples`` are on the monotonic clock;
    ``largest_process_bytes`` is the largest resident memory of one process in any sample.
    """

    def __init__(
        self,
        connection: psycopg.Connection,
        postmaster_pid: int,
        every_s: float,
        *,
        is_by_statement: bool = False,
    ) -> None:
        """Prepare to sample a server every ``every_s`` seconds; also by query id, from PostgreSQL 14 on."""
        self.samples: list[ActivitySample] = []
        self.largest_process_bytes = 0
        self._connection = connection
        self._postmaster_pid = postmaster_pid
        self._every_s = every_s
        has_statements = is_by_statement and connection.info.server_version >= _WITH_STATEMENTS
        self._query = _ACTIVITY.format("query_id" if has_statements else _NO_STATEMENT)
        self._is_over = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="activity sampling", daemon=True)

    def __enter__(self) -> Self:
        """Start the thread."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        """Stop the thread, within a time limit.

        Raises: ServerError if the sampling failed or does not end, unless the block itself raised an error.
        """
        self._is_over.set()
        self._thread.join(_STOP_LIMIT_S)
        if is_late := self._thread.is_alive():
            # The caller will use or close the connection, which must not happen while the thread waits on it.
            with contextlib.suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=_STOP_LIMIT_S)
            self._thread.join(_STOP_LIMIT_S)
        if kind is not None:
            return
        if is_late:
            raise ServerError(
                f"the server did not respond to a query of its activity within {_STOP_LIMIT_S:.0f} s"
            )
        if self._error is not None:
            raise ServerError(
                "could not sample the activity of the server",
                detail=str(self._error).strip() or repr(self._error),
            ) from self._error

    def _run(self) -> None:
        with contextlib.ExitStack() as stack:
            stack.push(self._keep)
            self._sample()

    def _keep(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        """Store the error that ended the sampling; ``__exit__`` raises it."""
        self._error = error
        return True

    def _sample(self) -> None:
        next_s = time.monotonic()
        while not self._is_over.wait(max(0.0, next_s - time.monotonic())):
            rows = self._connection.execute(self._query).fetchall()
            self.samples.append(sample_of(rows, time.monotonic()))
            if len(self.samples) % _SAMPLES_PER_MEMORY == 1:
                self._sample_memory()
            next_s = max(next_s + self._every_s, time.monotonic())

    def _sample_memory(self) -> None:
        pids = (self._postmaster_pid, *children(self._postmaster_pid))
        self.largest_process_bytes = max(self.largest_process_bytes, *map(resident_bytes, pids))


@lru_cache(maxsize=1024)
def _wait(type_: str, event: str) -> Wait:
    """Return a shared object for equal waits: a step of hours has a hundred thousand samples."""
    return Wait(type_, event)


def sample_of(rows: Iterable[tuple[Any, ...]], at_s: float) -> ActivitySample:
    """Return the sample from rows of (backend type, wait event type, wait event, query id, backends).

    PostgreSQL reads a backend's state first and its wait event a moment later. So an active backend in
    ClientRead was on the CPU, and became idle in between.
    """
    waits: Counter[Wait] = Counter()
    others: Counter[str] = Counter()
    statements: list[tuple[int, Wait, int]] = []
    for kind, type_, event, statement, backends in rows:
        if kind not in _BUSY:
            others[kind] += backends
            continue
        wait = _wait(CPU, "") if type_ is None or event == "ClientRead" else _wait(type_, event)
        waits[wait] += backends
        if statement is not None:
            statements.append((int(statement), wait, backends))
    return ActivitySample(
        at_s,
        waits=tuple(waits.items()),
        is_checkpointing=others["checkpointer"] > 0,
        autovacuum_workers=others["autovacuum worker"],
        statements=tuple(statements),
    )
