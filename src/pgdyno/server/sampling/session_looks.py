"""Look at clients' sessions, at regular intervals: how many work, and which events others wait for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import LiteralString

from pgdyno.model.servers.answers import answers_of_postgresql
from pgdyno.server.connection.connection import Connection
from pgdyno.server.connection.connection_errors import failures_in_words

# Of sessions that are hidden from the role, the database is all that shows.
_LOOK: LiteralString = """
SELECT pid, state, wait_event_type, wait_event FROM pg_catalog.pg_stat_activity
WHERE pid <> pg_catalog.pg_backend_pid()
  AND (backend_type = 'client backend' OR backend_type IS NULL AND datid IS NOT NULL)
"""
_TRANSACTIONS: LiteralString = """
SELECT pg_catalog.sum(xact_commit + xact_rollback)::bigint FROM pg_catalog.pg_stat_database
"""
_IN_TRANSACTION = "idle in transaction"  # also: (aborted)
_CLIENT = "Client"
_TELL_EVERY_S = 1.0


@dataclass
class SessionLooks:
    """Sums over all looks: sessions that work or want to, and others by the event that they wait for.

    ``between`` are sessions between two statements of a transaction; ``hidden`` are those of other roles that
    ours may not see.
    """

    looks: int = 0
    working: int = 0
    between: int = 0
    hidden: int = 0
    waits: Counter[str] = field(default_factory=Counter)
    client_waits: Counter[str] = field(default_factory=Counter)

    @property
    def in_transactions(self) -> int:
        """Sessions in transactions, over all looks."""
        return self.working + self.between + self.waits.total() + self.client_waits.total()

    def add(self, state: str | None, wait_type: str | None, event: str | None) -> None:
        """Count a session of a look."""
        if state is None:
            self.hidden += 1
        elif state.startswith(_IN_TRANSACTION):
            self.between += 1
        elif state != "active":
            return
        elif wait_type is None:
            self.working += 1
        elif wait_type == _CLIENT:
            self.client_waits[f"{wait_type}:{event}"] += 1
        else:
            self.waits[f"{wait_type}:{event}"] += 1


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
            rows = connection.execute(_LOOK, prepare=True).fetchall()
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
        return frozenset(int(pid) for pid, *_ in connection.execute(_LOOK, prepare=True).fetchall())


@answers_of_postgresql()
def read_transactions(connection: Connection) -> int:
    """Return how many transactions of all databases have ended, as sessions have reported them."""
    with failures_in_words():
        [[count]] = connection.execute(_TRANSACTIONS).fetchall()
    return int(count)
