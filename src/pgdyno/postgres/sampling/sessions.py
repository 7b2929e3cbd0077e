"""Look at sessions several times in a row: statements that follow each other show as transactions.

A look costs the server some tenths of a millisecond; the pauses between are so long that this stays below a
share of one CPU. On a busy machine looks last longer because they wait, which costs nothing: the quickest of
a row tells what a look costs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg import sql

from pgdyno.postgres.answers import answers_of_postgresql
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import failures_in_words
from pgdyno.postgres.statement_counts import Sighting


@dataclass
class SeenPauses:
    """The pauses that ended between one look and the next: a session was idle, and then no more, or again.

    Which pauses these are does not depend on how long they are.
    """

    seconds: list[float] = field(default_factory=list)
    _idle_since: dict[int, float] = field(default_factory=dict)

    def begin_row(self) -> None:
        """Begin looks in a row: nothing is known of the time before."""
        self._idle_since.clear()

    def take(
        self, session: int, idle_since_s: float | None, began_s: float | None, between_looks_s: float
    ) -> None:
        """Take a session that is idle since a time, or in a transaction that has begun at one, of one clock.

        A pause that is no longer than the time between two looks may be several transactions: it counts as 0.
        """
        ended_s = idle_since_s if began_s is None else began_s  # a transaction was too short to be seen
        if ended_s is None:
            return
        before_s = self._idle_since.pop(session, None)
        if idle_since_s is not None:
            self._idle_since[session] = idle_since_s
        if before_s is not None and ended_s > before_s:
            pause_s = ended_s - before_s
            self.seconds.append(pause_s if pause_s > between_looks_s else 0.0)


_SHARE = 0.01  # of the time, in which the server is asked; its CPU time is less
_LOOKS_IN_A_ROW = 20  # arbitrary: a transaction of some statements lasts as long as some looks
_LEAST_PAUSE_S = 0.02
_WITH_IDS = 140_000  # the first version that shows the ids of statements
# Of the view pg_stat_activity, the function alone: without its joins, a look costs a third.
_SESSIONS = sql.SQL("""
SELECT pid, xact_start::pg_catalog.text, {query_id}, state OPERATOR(pg_catalog.=) 'idle in transaction',
  pg_catalog.date_part('epoch', xact_start),
  CASE WHEN state OPERATOR(pg_catalog.=) 'idle' THEN pg_catalog.date_part('epoch', state_change) END
FROM pg_catalog.pg_stat_get_activity(NULL)
WHERE backend_type OPERATOR(pg_catalog.=) 'client backend'
  AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()
  AND datid OPERATOR(pg_catalog.=) {database}
""")
_DATABASE = "SELECT datid FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())"


@dataclass
class Sessions:
    """The sessions that were seen; ``in_transactions`` is the sum over all looks."""

    sightings: list[Sighting] = field(default_factory=list)
    looks: int = 0
    in_transactions: int = 0
    pauses: SeenPauses = field(default_factory=SeenPauses)

    @property
    def mean_in_transactions(self) -> float:
        """The mean number of sessions in transactions."""
        return self.in_transactions / self.looks if self.looks else 0.0


@answers_of_postgresql()
def watch_sessions(connection: Connection, duration_s: float, tell: Callable[[float], None]) -> Sessions:
    """Look at sessions for a time; ``tell`` is told how much of it has passed.

    Before PostgreSQL 14, nobody sees which statements they run. Raises: ServerError, ConnectionFailedError.
    """
    seen = Sessions()
    has_ids = connection.info.server_version >= _WITH_IDS
    with failures_in_words():
        [[database]] = connection.execute(_DATABASE).fetchall()
    query_id = sql.SQL("query_id" if has_ids else "NULL")
    look = _SESSIONS.format(query_id=query_id, database=sql.Literal(int(database)))
    began_s = time.monotonic()
    while (passed_s := time.monotonic() - began_s) < duration_s:
        tell(passed_s)
        seen.pauses.begin_row()
        look_s = time.monotonic()
        took_s = []
        for _ in range(_LOOKS_IN_A_ROW):
            rows = _look(connection, look)
            before_s, look_s = look_s, time.monotonic()
            took_s.append(look_s - before_s)
            _take(rows, seen, took_s[-1])
        asked_s = _LOOKS_IN_A_ROW * min(took_s)
        pause_s = max(_LEAST_PAUSE_S, asked_s / _SHARE)
        time.sleep(max(0.0, min(pause_s, duration_s - (time.monotonic() - began_s))))
    return seen


def _look(connection: Connection, look: sql.Composed) -> Sequence[Sequence[Any]]:
    with failures_in_words():
        return connection.execute(look).fetchall()


def _take(rows: Sequence[Sequence[Any]], seen: Sessions, between_looks_s: float) -> None:
    seen.looks += 1
    for pid, transaction, statement, is_between, began_s, idle_since_s in rows:
        seen.pauses.take(int(pid), _float(idle_since_s), _float(began_s), between_looks_s)
        if transaction is not None:
            seen.in_transactions += 1
            if statement is not None:
                seen.sightings.append(
                    Sighting(int(pid), str(transaction), int(statement), is_between=bool(is_between))
                )


def _float(value: object) -> float | None:
    return None if value is None else float(str(value))
