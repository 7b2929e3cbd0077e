"""Sample client sessions at regular intervals: how many are working, and the wait events of the others."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import LiteralString

from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.waits import CPU

_LOOK: LiteralString = """
SELECT pid, state, wait_event_type, wait_event, {} FROM pg_catalog.pg_stat_activity
WHERE backend_type OPERATOR(pg_catalog.=) 'client backend'
  AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()
"""
_NO_STATEMENT: LiteralString = "NULL::pg_catalog.int8"
_MAY_SEE: LiteralString = "SELECT pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')"
_TOTALS: LiteralString = """
SELECT pg_catalog.sum(xact_commit OPERATOR(pg_catalog.+) xact_rollback)::pg_catalog.int8,
       pg_catalog.sum(active_time OPERATOR(pg_catalog.+) idle_in_transaction_time),
       pg_catalog.sum(sessions)::pg_catalog.int8
FROM pg_catalog.pg_stat_database
"""
_OLD_TOTALS: LiteralString = """
SELECT pg_catalog.sum(xact_commit OPERATOR(pg_catalog.+) xact_rollback)::pg_catalog.int8
FROM pg_catalog.pg_stat_database
"""
_WITH_SESSION_TIMES = 140_000  # and the statement of each session
_IN_TRANSACTION = "idle in transaction"  # also: (aborted)
_CLIENT = "Client"
_READING = "ClientRead"  # of an active session: it was on the CPU when its state was read, a moment earlier
_REPORT_EVERY_S = 1.0


@dataclass
class SessionSamples:
    """Sums over all samples: sessions on the CPU or runnable, and the others by wait event.

    ``between`` counts sessions that are idle in transaction. ``statements`` counts the working and waiting
    sessions by query id and wait event; only with query ids (PostgreSQL 14).
    """

    looks: int = 0
    working: int = 0
    between: int = 0
    waits: Counter[str] = field(default_factory=Counter)
    client_waits: Counter[str] = field(default_factory=Counter)
    statements: Counter[tuple[int, str]] = field(default_factory=Counter)

    @property
    def in_transactions(self) -> int:
        """Sessions in transactions, summed over all samples."""
        return self.working + self.between + self.waits.total() + self.client_waits.total()

    def add(
        self, state: str | None, wait_type: str | None, event: str | None, statement: int | None = None
    ) -> None:
        """Count a session of a sample; ``statement`` is the query id of the one that it runs."""
        if state is None:  # it is starting
            return
        if state.startswith(_IN_TRANSACTION):
            self.between += 1
        if state != "active":
            return
        wait = CPU if wait_type is None or event == _READING else _named(wait_type, event)
        if wait == CPU:
            self.working += 1
        elif wait_type == _CLIENT:
            self.client_waits[wait] += 1
        else:
            self.waits[wait] += 1
        if statement is not None:
            self.statements[statement, wait] += 1


def _named(wait_type: str, event: str | None) -> str:
    return " ".join(f"{wait_type}:{event}".split())


@checked_results()
def sample_sessions(
    connection: Connection, duration_s: float, every_s: float, report: Callable[[float], None]
) -> SessionSamples:
    """Sample sessions for ``duration_s``; ``report`` gets the elapsed time in seconds.

    Raises: ServerError, ConnectionFailedError.
    """
    seen = SessionSamples()
    has_statements = connection.info.server_version >= _WITH_SESSION_TIMES
    query = _LOOK.format("query_id" if has_statements else _NO_STATEMENT)
    began_s = next_s = next_report_s = time.monotonic()
    while (now_s := time.monotonic()) - began_s < duration_s:
        if now_s >= next_report_s:
            report(now_s - began_s)
            next_report_s += _REPORT_EVERY_S
        with server_errors_converted():
            rows = connection.execute(query).fetchall()
        seen.looks += 1
        for _pid, state, wait_type, event, statement in rows:
            seen.add(state, wait_type, event, statement)
        next_s = max(next_s + every_s, time.monotonic())
        time.sleep(max(0.0, min(next_s, began_s + duration_s) - time.monotonic()))
    return seen


@checked_results()
def read_session_pids(connection: Connection) -> frozenset[int]:
    """Return the server's process ids of all client backends except this session's."""
    with server_errors_converted():
        return frozenset(int(pid) for pid, *_ in connection.execute(_LOOK.format(_NO_STATEMENT)).fetchall())


@dataclass(frozen=True)
class SessionTotals:
    """Totals of all databases. Sessions report them at the end of a transaction, about once a second.

    ``in_transactions_s`` is the sessions' total time in transactions, ``sessions`` the number of started
    sessions; both None before PostgreSQL 14.
    """

    transactions: int
    in_transactions_s: float | None
    sessions: int | None


@checked_results()
def read_session_totals(connection: Connection) -> SessionTotals:
    """Return the current totals."""
    has_times = connection.info.server_version >= _WITH_SESSION_TIMES
    with server_errors_converted():
        if not has_times:
            [[transactions]] = connection.execute(_OLD_TOTALS).fetchall()
            return SessionTotals(int(transactions), None, None)
        [[transactions, ms, sessions]] = connection.execute(_TOTALS).fetchall()
    return SessionTotals(int(transactions), float(ms) / 1000, int(sessions))


@checked_results()
def may_see_sessions(connection: Connection) -> bool:
    """Whether the role may see other users' sessions."""
    with server_errors_converted():
        return connection.execute(_MAY_SEE).fetchall() == [(True,)]
