"""A fleet's trials in a PostgreSQL, for several controllers: the schema ``pgdyno`` of one database.

Each change of a trial is a transaction that looks at the trial first: only one controller makes it, and one
whose answer was lost is not made twice. A controller has a number, and an advisory lock by it as long as its
session lives: the server knows when it has ended, and no clocks have to agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from psycopg.errors import UniqueViolation

from pgdyno.model.fleets.finding import FleetFinding
from pgdyno.model.fleets.fleet_order import FleetOrder
from pgdyno.model.fleets.fleet_trial import FleetTrial, FleetTrialState
from pgdyno.model.fleets.trial_store import FleetEvent, TrialStore
from pgdyno.store.fleets.shared_schema import LOCK_CLASS, prepare, stored_version
from pgdyno.store.fleets.store_session import Connection, StoreSession
from pgdyno.store.fleets.stored_finding import command_text, finding_text, read_finding, require_command

_PAGE_BYTES = 4 << 20  # arbitrary; an answer of the server may take 64 MB
_TRIAL_BYTES, _FINDING_BYTES = 400, 8000  # of a row, generously: measured are 60 and 5,000
_MACHINES = 100  # begun at once: with the most trials that they may have it takes seconds
_COLUMNS = "machine, number, state, lease, attempts, experiment, reason"
_ADD_TRIALS = """
INSERT INTO pgdyno.trial (fleet, machine, number, state, lease, attempts)
SELECT %s, machine, number, %s, 0, 0
FROM unnest(%s::text[], %s::integer[]) AS ordered (machine, trials), generate_series(1, trials) AS number
ON CONFLICT DO NOTHING
"""
_ABANDONED = f"""
SELECT {_COLUMNS} FROM pgdyno.trial WHERE fleet = %s AND state = %s AND NOT EXISTS (
    SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
    WHERE datname = current_database() AND locktype = 'advisory' AND granted
    AND classid::bigint = %s AND objid::bigint = controller AND objsubid = 2
)
"""  # noqa: S608 — ours
_SECONDS = """
SELECT done.machine, extract(epoch FROM done.at - leased.at)::double precision FROM pgdyno.event AS done
JOIN pgdyno.event AS leased USING (fleet, machine, number, lease)
WHERE fleet = %s AND done.what = 'done' AND leased.what = 'leased'
"""


class SharedFleetStore:
    """Reads and writes the trials of one fleet. Several controllers may write."""

    def __init__(self, session: StoreSession, fleet: str) -> None:
        """Use a session, for the fleet of this name."""
        self._session, self._fleet = session, fleet
        self._controller: int | None = None

    def close(self) -> None:
        """End the session, and with it this controller's leases."""
        self._session.close()

    def is_begun(self) -> bool:
        """Whether a controller has begun the fleet."""
        return self._session.run(self._is_begun)

    def begin(self, order: FleetOrder, fleet_id: str) -> str:
        """Add the order's trials that are not there yet; return the fleet's id, which is given once.

        Raises: StorageError if the fleet was begun with another command: its trials would not be alike.
        """
        self._session.run(partial(prepare, name=self._session.name))
        self._session.on_connection(self._enter)
        return self._session.run(partial(self._begin, order, fleet_id))

    def trials(self) -> list[FleetTrial]:
        """Return all trials, by machine and number."""
        return [_trial(row) for row in self._pages(_COLUMNS, "pgdyno.trial", _TRIAL_BYTES)]

    def changed_by_others(self) -> Sequence[FleetTrial]:
        """Return all trials: any controller may have changed them."""
        return self.trials()

    def abandoned(self) -> Sequence[FleetTrial]:
        """Return the leased trials whose controller has no session any more."""
        values = (self._fleet, FleetTrialState.LEASED, LOCK_CLASS)
        return [_trial(row) for row in self._rows(_ABANDONED, values)]

    def write(
        self, before: FleetTrial, after: FleetTrial, event: FleetEvent, finding: FleetFinding | None = None
    ) -> bool:
        """Write a trial's new state, the event behind it, and its result; all of it or nothing.

        False: nothing is written, since the trial is not as it was ``before``, its machine has another lease,
        or another trial has this result. Raises: StorageError.
        """
        try:
            return self._session.run(
                lambda connection: self._write(connection, before, after, event, finding)
            )
        except UniqueViolation:
            return False

    def record(self, trial: FleetTrial, event: FleetEvent) -> None:
        """Write an event that changed nothing."""
        self._session.run(lambda connection: self._add_event(connection, trial, event))

    def findings(self) -> Iterator[tuple[str, FleetFinding]]:
        """Yield the machine and the finding of every trial that is done. Raises: StorageError."""
        source = "pgdyno.trial JOIN pgdyno.result USING (fleet, experiment)"
        for machine, _, document in self._pages("machine, number, finding", source, _FINDING_BYTES):
            yield machine, read_finding(document, self._session.name)

    def answered_with(self, finding: FleetFinding) -> FleetTrial | None:
        """Return the trial that has this result, by its id or its figures; None if there is none."""
        query = (
            f"SELECT {_COLUMNS} FROM pgdyno.trial JOIN pgdyno.result USING (fleet, experiment)"  # noqa: S608 — ours
            " WHERE fleet = %s AND (experiment = %s OR blocks_sha256 = %s)"
        )
        rows = self._rows(query, (self._fleet, finding.experiment, finding.blocks_sha256))
        return next(map(_trial, rows), None)

    def seconds(self) -> Iterator[tuple[str, float]]:
        """Yield machine and time of every trial that is done, from its last lease to its result."""
        yield from self._rows(_SECONDS, (self._fleet,))

    def events(self) -> dict[str, int]:
        """Return how often each thing befell a trial."""
        query = "SELECT what, count(*) FROM pgdyno.event WHERE fleet = %s GROUP BY what"
        return dict(self._rows(query, (self._fleet,)))

    def _is_begun(self, connection: Connection) -> bool:
        if stored_version(connection, self._session.name) is None:
            return False
        found = connection.execute("SELECT FROM pgdyno.fleet WHERE name = %s", (self._fleet,))
        return found.fetchone() is not None

    def _begin(self, order: FleetOrder, fleet_id: str, connection: Connection) -> str:
        connection.execute(
            "INSERT INTO pgdyno.fleet VALUES (%s, %s, %s) ON CONFLICT (name) DO NOTHING",
            (self._fleet, fleet_id, command_text(order)),
        )
        row = connection.execute(
            "SELECT id, command FROM pgdyno.fleet WHERE name = %s", (self._fleet,)
        ).fetchone()
        found, begun = row or ("", "")
        require_command(order, begun)
        for first in range(0, len(order.machines), _MACHINES):
            some = order.machines[first : first + _MACHINES]
            counted = ([one.name for one in some], [one.trials for one in some])
            connection.execute(_ADD_TRIALS, (self._fleet, FleetTrialState.WAITING, *counted))
        return str(found)

    def _enter(self, connection: Connection) -> None:
        """Give this controller a number by which others see that it lives; its leases go with it."""
        (number,) = connection.execute("SELECT nextval('pgdyno.controller')").fetchone() or (0,)
        connection.execute("SELECT pg_advisory_lock(%s, %s::integer)", (LOCK_CLASS, number))
        if self._controller is not None:
            connection.execute(
                "UPDATE pgdyno.trial SET controller = %s WHERE controller = %s", (number, self._controller)
            )
        self._controller = number

    def _write(
        self,
        connection: Connection,
        before: FleetTrial,
        after: FleetTrial,
        event: FleetEvent,
        finding: FleetFinding | None,
    ) -> bool:
        mine = self._controller if after.state is FleetTrialState.LEASED else None
        row = connection.execute(
            f"SELECT {_COLUMNS}, controller FROM pgdyno.trial"  # noqa: S608 — ours
            " WHERE fleet = %s AND machine = %s AND number = %s FOR UPDATE",
            (self._fleet, *before.place),
        ).fetchone()
        if row is None:
            return False
        if (_trial(row[:-1]), row[-1]) == (after, mine):
            return True  # it was written, and the answer was lost
        if _trial(row[:-1]) != before:
            return False
        self._update(connection, after, mine)
        self._add_event(connection, after, event)
        if finding is not None:
            connection.execute(
                "INSERT INTO pgdyno.result VALUES (%s, %s, %s, %s)",
                (self._fleet, finding.experiment, finding.blocks_sha256, finding_text(finding)),
            )
        return True

    def _update(self, connection: Connection, after: FleetTrial, controller: int | None) -> None:
        connection.execute(
            "UPDATE pgdyno.trial SET state = %s, lease = %s, attempts = %s, experiment = %s, reason = %s,"
            " controller = %s WHERE fleet = %s AND machine = %s AND number = %s",
            (
                *(after.state, after.lease, after.attempts, after.experiment, after.reason),
                *(controller, self._fleet, *after.place),
            ),
        )

    def _add_event(self, connection: Connection, trial: FleetTrial, event: FleetEvent) -> None:
        connection.execute(
            "INSERT INTO pgdyno.event VALUES (%s, %s, %s, %s, %s, %s, %s)",
            (self._fleet, event.at, *trial.place, trial.lease, event.what, event.detail),
        )

    def _rows(self, query: str, values: Sequence[object]) -> list[tuple[Any, ...]]:
        return self._session.run(lambda connection: connection.execute(query.encode(), values).fetchall())

    def _pages(self, columns: str, source: str, row_bytes: int) -> Iterator[tuple[Any, ...]]:
        """Yield rows by machine and number, which are the first of the ``columns``."""
        query = (
            f"SELECT {columns} FROM {source} WHERE fleet = %s AND (machine, number) > (%s, %s)"  # noqa: S608 — ours
            f" ORDER BY machine, number LIMIT {_PAGE_BYTES // row_bytes}"
        )
        last: tuple[str, int] = ("", 0)
        while rows := self._rows(query, (self._fleet, *last)):
            yield from rows
            last = rows[-1][:2]


def _trial(row: Sequence[Any]) -> FleetTrial:
    machine, number, state, *others = row
    return FleetTrial(machine, number, FleetTrialState(state), *others)


_: type[TrialStore] = SharedFleetStore
