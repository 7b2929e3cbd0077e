"""A fleet's trials on disk: one SQLite file in WAL mode, with the state of each trial and all that befell it.

Every change of a trial is one transaction, flushed to the disk: what was leased, answered or lost is known
after a crash of the controller or of its host. Results are
findings: the experiments themselves are in the store of experiments.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pgdyno.model.errors import StorageError
from pgdyno.model.fleets.finding import FleetFinding
from pgdyno.model.fleets.fleet_order import FleetOrder
from pgdyno.model.fleets.fleet_trial import FleetTrial, FleetTrialState
from pgdyno.model.fleets.trial_store import FleetEvent, TrialStore
from pgdyno.store.fleets.stored_finding import command_text, finding_text, read_finding, require_command
from pgdyno.store.sqlite_file import open_sqlite

_VERSION = 1
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS fleet (id TEXT PRIMARY KEY, command TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS trial (
    machine TEXT NOT NULL, number INTEGER NOT NULL, state TEXT NOT NULL, lease INTEGER NOT NULL,
    attempts INTEGER NOT NULL, experiment TEXT UNIQUE, reason TEXT, PRIMARY KEY (machine, number)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS result (
    experiment TEXT PRIMARY KEY, blocks_sha256 TEXT NOT NULL UNIQUE, finding TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS event (
    at TEXT NOT NULL, machine TEXT NOT NULL, number INTEGER NOT NULL, lease INTEGER NOT NULL,
    what TEXT NOT NULL, detail TEXT
);
PRAGMA user_version = {_VERSION};
"""
_WAIT_S = 10.0  # for a reader; there is one writer
_COLUMNS = "machine, number, state, lease, attempts, experiment, reason"


class _StaleError(Exception):
    """The trial is not as its controller knows it."""


class FleetStore:
    """Reads and writes the trials of one fleet. One controller writes; readers may look meanwhile."""

    def __init__(self, path: Path) -> None:
        """Open the file, creating it at first use. Raises: StorageError if it cannot be used."""
        self.path = path
        self._mine: set[tuple[str, int]] = set()
        try:
            self._connection, _ = open_sqlite(path, "the fleet's store", _VERSION, "FULL", _WAIT_S)
            self._connection.executescript(_SCHEMA)
            self._inode = path.stat().st_ino
        except sqlite3.DatabaseError as error:
            raise StorageError(f'could not open the fleet\'s store "{path}"', detail=str(error)) from error

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def begin(self, order: FleetOrder, fleet_id: str) -> str:
        """Add the order's trials that are not there yet; return the fleet's id, which is given once.

        Raises: StorageError if the fleet was begun with another command: its trials would not be alike.
        """
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO fleet SELECT ?, ? WHERE NOT EXISTS (SELECT 1 FROM fleet)",
                (fleet_id, command_text(order)),
            )
            found, begun = connection.execute("SELECT id, command FROM fleet").fetchone()
            require_command(order, begun)
            connection.executemany(
                "INSERT OR IGNORE INTO trial VALUES (?, ?, ?, 0, 0, NULL, NULL)",
                (
                    (machine.name, number, FleetTrialState.WAITING)
                    for machine in order.machines
                    for number in range(1, machine.trials + 1)
                ),
            )
        return str(found)

    def trials(self) -> list[FleetTrial]:
        """Return all trials, by machine and number."""
        query = f"SELECT {_COLUMNS} FROM trial ORDER BY machine, number"  # noqa: S608 — ours
        return [_trial(row) for row in self._connection.execute(query)]

    def changed_by_others(self) -> Sequence[FleetTrial]:
        """Return none: one controller alone has the file."""
        return ()

    def abandoned(self) -> Sequence[FleetTrial]:
        """Return the leased trials that were leased before the file was opened."""
        query = f"SELECT {_COLUMNS} FROM trial WHERE state = ?"  # noqa: S608 — ours
        leased = map(_trial, self._connection.execute(query, (FleetTrialState.LEASED,)))
        return [one for one in leased if one.place not in self._mine]

    def write(
        self, before: FleetTrial, after: FleetTrial, event: FleetEvent, finding: FleetFinding | None = None
    ) -> bool:
        """Write a trial's new state, the event behind it, and its result; all of it or nothing.

        False: nothing is written, since the trial is not as it was ``before``, or another has this result.
        Raises: StorageError if the file cannot be written.
        """
        if finding is not None and self.answered_with(finding) is not None:
            return False
        try:
            with self._transaction() as connection:
                _update(connection, before, after)
                if finding is not None:
                    result = (finding.experiment, finding.blocks_sha256, finding_text(finding))
                    connection.execute("INSERT INTO result VALUES (?, ?, ?)", result)
                _add_event(connection, after, event)
        except _StaleError:
            return False
        self._mine.add(after.place)
        return True

    def record(self, trial: FleetTrial, event: FleetEvent) -> None:
        """Write an event that changed nothing."""
        with self._transaction() as connection:
            _add_event(connection, trial, event)

    def findings(self) -> Iterator[tuple[str, FleetFinding]]:
        """Yield the machine and the finding of every trial that is done. Raises: StorageError."""
        query = "SELECT machine, finding FROM trial JOIN result USING (experiment) ORDER BY machine, number"
        for machine, document in self._connection.execute(query):
            yield machine, read_finding(document, f'the fleet\'s store "{self.path}"')

    def answered_with(self, finding: FleetFinding) -> FleetTrial | None:
        """Return the trial that has this result, by its id or its figures; None if there is none."""
        query = (
            f"SELECT {_COLUMNS} FROM trial JOIN result USING (experiment)"  # noqa: S608 — ours
            " WHERE experiment = ? OR blocks_sha256 = ?"
        )
        row = self._connection.execute(query, (finding.experiment, finding.blocks_sha256)).fetchone()
        return None if row is None else _trial(row)

    def seconds(self) -> Iterator[tuple[str, float]]:
        """Yield machine and time of every trial that is done, from its last lease to its result."""
        yield from self._connection.execute(
            "SELECT machine, (julianday(done.at) - julianday(leased.at)) * 86400.0 FROM event AS done"
            " JOIN event AS leased USING (machine, number, lease)"
            " WHERE done.what = 'done' AND leased.what = 'leased'"
        )

    def events(self) -> dict[str, int]:
        """Return how often each thing befell a trial."""
        return dict(self._connection.execute("SELECT what, count(*) FROM event GROUP BY what"))

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Begin explicitly: without an isolation level, sqlite3 commits every statement on its own."""
        try:
            if self.path.stat().st_ino != self._inode:
                raise FileNotFoundError("another file is in its place")
            self._connection.execute("BEGIN IMMEDIATE")
            with self._connection:  # commits, or rolls back on an exception
                yield self._connection
        except (sqlite3.DatabaseError, OSError) as error:
            raise StorageError(
                f'could not write to the fleet\'s store "{self.path}"',
                detail=str(error),
                hint="mend it, and start pgdyno fleet run again: it goes on from what is stored",
            ) from error


def _trial(row: Sequence[Any]) -> FleetTrial:
    machine, number, state, *others = row
    return FleetTrial(machine, number, FleetTrialState(state), *others)


def _add_event(connection: sqlite3.Connection, trial: FleetTrial, event: FleetEvent) -> None:
    connection.execute(
        "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?)",
        (event.at, *trial.place, trial.lease, event.what, event.detail),
    )


def _update(connection: sqlite3.Connection, before: FleetTrial, after: FleetTrial) -> None:
    """Write a trial's new state. Raises: _StaleError if it is not as it was ``before``."""
    done = connection.execute(
        "UPDATE trial SET state = ?, lease = ?, attempts = ?, experiment = ?, reason = ?"
        " WHERE machine = ? AND number = ? AND state = ? AND lease = ?",
        (
            *(after.state, after.lease, after.attempts, after.experiment, after.reason),
            *(*before.place, before.state, before.lease),
        ),
    )
    if done.rowcount != 1:
        raise _StaleError


_: type[TrialStore] = FleetStore
