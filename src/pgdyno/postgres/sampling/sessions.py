"""Sample sessions in bursts, so that consecutive statements can be grouped into transactions.

A sample costs the server a few tenths of a millisecond. The pauses between bursts limit the cost to a share
of one CPU. On a busy machine, samples take longer because they wait, which costs no CPU time; so the fastest
sample of a burst measures the cost.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from psycopg import sql

from pgdyno.postgres.checked_results import checked_results
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.connection.connection_errors import server_errors_converted
from pgdyno.postgres.statement_counts import SightedEnd, SightedWait, Sighting


@dataclass
class SeenPauses:
    """Client pauses that ended between two samples: a session was idle, and then active, or idle again.

    The selection is not biased by the pauses' length.
    """

    seconds: list[float] = field(default_factory=list)
    _idle_since: dict[int, float] = field(default_factory=dict)

    def begin_row(self) -> None:
        """Begin a burst: the time before it is unknown."""
        self._idle_since.clear()

    def add(
        self, session: int, idle_since_s: float | None, began_s: float | None, between_looks_s: float
    ) -> None:
        """Add a session's state: idle since a time, or in a transaction since a time, on the same clock.

        A pause not longer than the sampling interval may hide several transactions: it counts as 0.
        """
        ended_s = idle_since_s if began_s is None else began_s  # idle again: the transaction was not sampled
        if ended_s is None:
            return
        before_s = self._idle_since.pop(session, None)
        if idle_since_s is not None:
            self._idle_since[session] = idle_since_s
        if before_s is not None and ended_s > before_s:
            pause_s = ended_s - before_s
            self.seconds.append(pause_s if pause_s > between_looks_s else 0.0)


@dataclass
class SeenEnds:
    """How transactions ended: their session was seen in COMMIT or ROLLBACK, or idle after it.

    A session that is idle after a transaction may have run another one since the sample before: the end can
    be of that one.
    """

    ended: list[SightedEnd] = field(default_factory=list)
    _open: dict[int, tuple[str, set[int]]] = field(default_factory=dict)

    def begin_row(self) -> None:
        """Begin a burst: the time before it is unknown."""
        self._open.clear()

    def add(
        self, session: int, transaction: str | None, statement: int | None, *, is_rolled_back: bool | None
    ) -> None:
        """Add a session's state; ``is_rolled_back`` None: its latest statement ends no transaction."""
        known, statements = self._open.pop(session, (None, set[int]()))
        is_same = transaction in {known, None}
        if is_rolled_back is not None and is_same and statements:
            self.ended.append(SightedEnd(frozenset(statements), is_rolled_back))
        elif is_rolled_back is None and transaction is not None:
            seen = set() if statement is None else {statement}
            self._open[session] = transaction, (statements | seen if is_same else seen)


@dataclass
class SeenWaits:
    """Sessions that waited for their client, each time once, except those that did so from the beginning."""

    waits: list[SightedWait] = field(default_factory=list)
    _states: dict[int, tuple[str | None, int | None, float | None] | None] = field(default_factory=dict)
    _in_row: set[int] = field(default_factory=set)

    def begin_row(self) -> None:
        """Begin a burst: the time before it is unknown."""
        self._in_row.clear()

    def add(
        self,
        session: int,
        look: int,
        sighting: Sighting | None,
        after: int | None,
        idle_since_s: float | None,
    ) -> None:
        """Add a session's state at a sample: in a transaction, or idle since a time ``after`` a statement."""
        state: tuple[str | None, int | None, float | None] | None = None
        if idle_since_s is not None:
            state = None, after, idle_since_s
        elif sighting is not None and sighting.is_between:
            state = sighting.transaction, sighting.statement, None
        known, self._states[session] = self._states.get(session), state
        if state is not None and state != known and look > 1 and after is not None:
            is_new = session in self._in_row
            self.waits.append(SightedWait(after, is_alone=idle_since_s is not None, is_new=is_new))
        self._in_row.add(session)


@dataclass
class SeenSessions:
    """Sessions that worked, by process id, and the samples in which they were first and last connected."""

    _idle_since_s: dict[int, float | None] = field(default_factory=dict)
    _spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    _working: set[int] = field(default_factory=set)

    def add(self, session: int, look: int, idle_since_s: float | None, *, is_in_transaction: bool) -> None:
        """Add a session's state at a sample."""
        first, _ = self._spans.setdefault(session, (look, look))
        self._spans[session] = first, look
        if is_in_transaction or self._idle_since_s.setdefault(session, idle_since_s) != idle_since_s:
            self._working.add(session)

    def mean(self, looks: int) -> float:
        """Return the mean number of such sessions."""
        spans = (self._spans[one] for one in self._working)
        return sum(last - first + 1 for first, last in spans) / looks if looks else 0.0


_SHARE = 0.01  # of the time is spent in queries; their CPU time is less
_LOOKS_IN_A_ROW = 20  # arbitrary: a transaction of a few statements lasts as long as a few samples
_LEAST_PAUSE_S = 0.02
_WITH_IDS = 140_000  # first version with query_id
# The function behind pg_stat_activity: without the view's joins, a sample costs a third.
# Of a query's text, only its kind leaves the server: the text has values.
_SESSIONS = sql.SQL("""
SELECT pid, xact_start::pg_catalog.text, {query_id}, state OPERATOR(pg_catalog.=) 'idle in transaction',
  pg_catalog.date_part('epoch', xact_start),
  CASE WHEN state OPERATOR(pg_catalog.=) 'idle' THEN pg_catalog.date_part('epoch', state_change) END,
  CASE WHEN query OPERATOR(pg_catalog.~*) {commit} THEN false
       WHEN query OPERATOR(pg_catalog.~*) {rollback} THEN true END
FROM pg_catalog.pg_stat_get_activity(NULL)
WHERE backend_type OPERATOR(pg_catalog.=) 'client backend'
  AND pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()
  AND application_name OPERATOR(pg_catalog.!~) '^pgdyno(, process|$)'
  AND datid OPERATOR(pg_catalog.=) {database}
""")
_COMMENTS, _WORK = r"^(\s|/\*.*?\*/)*", r"(\s+(work|transaction))?\s*(;\s*|/\*.*\*/\s*|\sand\s.*)*$"
_COMMIT = sql.Literal(f"{_COMMENTS}(commit|end){_WORK}")
_ROLLBACK = sql.Literal(f"{_COMMENTS}(rollback|abort){_WORK}")
_DATABASE = "SELECT datid FROM pg_catalog.pg_stat_get_activity(pg_catalog.pg_backend_pid())"


@dataclass
class Sessions:
    """The sampled sessions; ``in_transactions`` is the sum over all samples."""

    sightings: list[Sighting] = field(default_factory=list)
    looks: int = 0
    in_transactions: int = 0
    pauses: SeenPauses = field(default_factory=SeenPauses)
    ends: SeenEnds = field(default_factory=SeenEnds)
    waits: SeenWaits = field(default_factory=SeenWaits)
    connected: SeenSessions = field(default_factory=SeenSessions)

    @property
    def mean_in_transactions(self) -> float:
        """The mean number of sessions in transactions."""
        return self.in_transactions / self.looks if self.looks else 0.0


@checked_results()
def watch_sessions(connection: Connection, duration_s: float, report: Callable[[float], None]) -> Sessions:
    """Sample sessions for ``duration_s``; ``report`` gets the elapsed time in seconds.

    Before PostgreSQL 14, query ids are not available, so there are no sightings.
    Raises: ServerError, ConnectionFailedError.
    """
    seen = Sessions()
    has_ids = connection.info.server_version >= _WITH_IDS
    with server_errors_converted():
        [[database]] = connection.execute(_DATABASE).fetchall()
    query_id = sql.SQL("query_id" if has_ids else "NULL")
    look = _SESSIONS.format(
        query_id=query_id, database=sql.Literal(int(database)), commit=_COMMIT, rollback=_ROLLBACK
    )
    began_s = time.monotonic()
    while (passed_s := time.monotonic() - began_s) < duration_s:
        report(passed_s)
        seen.pauses.begin_row()
        seen.ends.begin_row()
        seen.waits.begin_row()
        look_s = time.monotonic()
        took_s = []
        for _ in range(_LOOKS_IN_A_ROW):
            rows = _look(connection, look)
            before_s, look_s = look_s, time.monotonic()
            took_s.append(look_s - before_s)
            _take(rows, seen, took_s[-1])
        queried_s = _LOOKS_IN_A_ROW * min(took_s)
        pause_s = max(_LEAST_PAUSE_S, queried_s / _SHARE)
        time.sleep(max(0.0, min(pause_s, duration_s - (time.monotonic() - began_s))))
    return seen


def _look(connection: Connection, look: sql.Composed) -> Sequence[Sequence[Any]]:
    with server_errors_converted():
        return connection.execute(look).fetchall()


def _take(rows: Sequence[Sequence[Any]], seen: Sessions, between_looks_s: float) -> None:
    seen.looks += 1
    for pid, transaction, query_id, is_between, began_s, idle_since_s, is_rolled_back in rows:
        session, statement = int(pid), None if query_id is None else int(query_id)
        seen.pauses.add(session, _float(idle_since_s), _float(began_s), between_looks_s)
        seen.ends.add(session, transaction, statement, is_rolled_back=is_rolled_back)
        is_in_transaction = transaction is not None
        seen.connected.add(session, seen.looks, _float(idle_since_s), is_in_transaction=is_in_transaction)
        seen.in_transactions += is_in_transaction
        sighting = None
        if is_in_transaction and statement is not None:
            sighting = Sighting(session, str(transaction), statement, is_between=bool(is_between))
            seen.sightings.append(sighting)
        seen.waits.add(session, seen.looks, sighting, statement, _float(idle_since_s))


def _float(value: object) -> float | None:
    return None if value is None else float(str(value))
