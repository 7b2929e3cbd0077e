"""Look at clients' sessions, at regular intervals: how many work, and which events others wait for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import LiteralString

from pgdyno.postgres.answers import answers_of_postgresql
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import failures_in_words

_LOOK: LiteralString = """
SELECT pid, state, wait_event_type, wait_event FROM pg_catalog.pg_stat_activity
WHERE backend_type OPERATOR(pg_catalog.=) 'client backend'
  AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()
"""
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
_WITH_SESSION_TIMES = 140_000
_IN_TRANSACTION = "idle in transaction"  # also: (aborted)
_CLIENT = "Client"
_READING = (
    "ClientRead"  # of an active session: it was computing when its state was looked at, a moment before
)
_TELL_EVERY_S = 1.0


@dataclass
class SessionLooks:
    """Sums over all looks: sessions that work or want to, and others by the event that they wait for.

    ``between`` are sessions between two statements of a transaction.
    """

    looks: int = 0
    working: int = 0
    between: int = 0
    waits: Counter[str] = field(default_factory=Counter)
    client_waits: Counter[str] = field(default_factory=Counter)

    @property
    def in_transactions(self) -> int:
        """Sessions in transactions, over all looks."""
        return self.working + self.between + self.waits.total() + self.client_waits.total()

    def add(self, state: str | None, wait_type: str | None, event: str | None) -> None:
        """Count a session of a look."""
        if state is None:  # it is beginning
            return
        if state.startswith(_IN_TRANSACTION):
            self.between += 1
        elif state != "active":
            return
        elif wait_type is None or event == _READING:
            self.working += 1
        elif wait_type == _CLIENT:
            self.client_waits[_named(wait_type, event)] += 1
        else:
            self.waits[_named(wait_type, event)] += 1


def _named(wait_type: str, event: str | None) -> str:
    return " ".join(f"{wait_type}:{event}".split())


@answers_of_postgresql()
def look_at_sessions(
    connection: Connection, duration_s: float, every_s: float, tell: Callable[[float], None]
) -> SessionLooks:
    """Look for a time; ``tell`` is told how much of it has passed.

    Raises: ServerError, ConnectionFailedError.
    """
    seen = SessionLooks()
    began_s = next_s = next_told_s = time.monotonic()
    while (now_s := time.monotonic()) - began_s < duration_s:
        if now_s >= next_told_s:
            tell(now_s - began_s)
            next_told_s += _TELL_EVERY_S
        with failures_in_words():
            rows = connection.execute(_LOOK).fetchall()
        seen.looks += 1
        for _pid, state, wait_type, event in rows:
            seen.add(state, wait_type, event)
        next_s = max(next_s + every_s, time.monotonic())
        time.sleep(max(0.0, min(next_s, began_s + duration_s) - time.monotonic()))
    return seen


@answers_of_postgresql()
def read_session_pids(connection: Connection) -> frozenset[int]:
    """Return the processes of clients' sessions besides ours, as the server numbers them."""
    with failures_in_words():
        return frozenset(int(pid) for pid, *_ in connection.execute(_LOOK).fetchall())


@dataclass(frozen=True)
class SessionTotals:
    """Counts of all databases, as sessions have reported them: about once a second, when a transaction ends.

    ``in_transactions_s`` is the time of sessions in transactions, ``sessions`` how many have begun; None: the
    server does not count them (before PostgreSQL 14).
    """

    transactions: int
    in_transactions_s: float | None
    sessions: int | None


@answers_of_postgresql()
def read_session_totals(connection: Connection) -> SessionTotals:
    """Return the counts up to now."""
    has_times = connection.info.server_version >= _WITH_SESSION_TIMES
    with failures_in_words():
        if not has_times:
            [[transactions]] = connection.execute(_OLD_TOTALS).fetchall()
            return SessionTotals(int(transactions), None, None)
        [[transactions, ms, sessions]] = connection.execute(_TOTALS).fetchall()
    return SessionTotals(int(transactions), float(ms) / 1000, int(sessions))


@answers_of_postgresql()
def may_see_sessions(connection: Connection) -> bool:
    """Whether the role may see the sessions of others."""
    with failures_in_words():
        return connection.execute(_MAY_SEE).fetchall() == [(True,)]
