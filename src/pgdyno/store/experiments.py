"""Experiments on disk, written while they run: one SQLite file in WAL mode.

A slice is one row, written when it ends. Its counts are added once the logs of its round have been read; each
block is then written as one JSON document.
After ``kill -9`` everything before the running slice is present. Commits are not flushed to disk
(``synchronous=NORMAL``), because that would disturb the measurement; they survive the end of the process.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from pgdyno.base.errors import StorageError
from pgdyno.model.experiments.experiment import Block, Experiment
from pgdyno.model.experiments.slices import Slice
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.store.documents import problems

_SCHEMA = """
CREATE TABLE IF NOT EXISTS experiment (id TEXT PRIMARY KEY, created TEXT NOT NULL, document TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS block (
    experiment TEXT NOT NULL, workload TEXT NOT NULL, round INTEGER NOT NULL, block INTEGER NOT NULL,
    document TEXT NOT NULL, PRIMARY KEY (experiment, workload, round, block)
);
CREATE TABLE IF NOT EXISTS slice (
    experiment TEXT NOT NULL, workload TEXT NOT NULL, round INTEGER NOT NULL, block INTEGER NOT NULL,
    arm INTEGER NOT NULL, start_ns INTEGER NOT NULL, end_ns INTEGER NOT NULL, server_cpu_ns TEXT NOT NULL,
    drained_ns INTEGER, steal_share REAL, foreign_cpu_share REAL, completed INTEGER, latencies TEXT,
    apart_ns INTEGER
);
CREATE INDEX IF NOT EXISTS slice_place ON slice (experiment, workload, round, block);
CREATE TABLE IF NOT EXISTS imported (
    experiment TEXT PRIMARY KEY, imported TEXT NOT NULL, bundle_sha256 TEXT NOT NULL
);
PRAGMA user_version = 4;
"""
_ADDED_COLUMNS = {
    "drained_ns": "INTEGER",
    "steal_share": "REAL",
    "foreign_cpu_share": "REAL",
    "completed": "INTEGER",
    "latencies": "TEXT",
    "apart_ns": "INTEGER",
}
"""Columns of slices added since version 1, in this order."""
_VERSION = 4
_ADD_SLICE = "INSERT INTO slice VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_ADD_COUNT = (
    "UPDATE slice SET completed = ?, latencies = ? WHERE experiment = ? AND workload = ? AND round = ?"
    " AND block = ? AND arm = ? AND start_ns = ?"
)
_EXPERIMENT = TypeAdapter(Experiment)
_BLOCK = TypeAdapter(Block)
_T = TypeVar("_T")


@dataclass(frozen=True)
class Place:
    """The position of slices in an experiment."""

    workload: str
    round: int
    block: int


@dataclass(frozen=True)
class Origin:
    """The origin of an imported experiment."""

    imported: str  # time: ISO 8601, UTC
    bundle_sha256: str


class ExperimentStore:
    """Reads and writes experiments. One writer at a time; readers may read at the same time."""

    def __init__(self, path: Path) -> None:
        """Open the store, creating it at first use. Raises: StorageError if it cannot be used."""
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._connection, found = _opened(path)
            if 0 < found < _VERSION:
                self._add_columns()
            self._connection.executescript(_SCHEMA)
        except sqlite3.DatabaseError as error:
            raise StorageError(f'could not open the store "{path}"', detail=str(error)) from error

    def _add_columns(self) -> None:
        """Add missing columns to the slice table.

        Some may exist already, if pgdyno was interrupted during an earlier attempt.
        """
        known = {name for (name,) in self._connection.execute("SELECT name FROM pragma_table_info('slice')")}
        for name, kind in _ADDED_COLUMNS.items():
            if name not in known:
                self._connection.execute(f"ALTER TABLE slice ADD COLUMN {name} {kind}")

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def save(self, experiment: Experiment) -> None:
        """Write all but the blocks; replaces an earlier version of the same experiment."""
        document = _readable(_EXPERIMENT, replace(experiment, blocks=()))
        self._execute(
            "INSERT INTO experiment VALUES (?, ?, ?)"
            " ON CONFLICT (id) DO UPDATE SET document = excluded.document",
            (experiment.id, experiment.created, document),
        )

    def add_slice(self, experiment_id: str, workload: str, round_index: int, block: int, done: Slice) -> None:
        """Write one slice."""
        row = _slice_row(experiment_id, Place(workload, round_index, block), done)
        self._execute(_ADD_SLICE, row)

    def add_counts(
        self, experiment_id: str, workload: str, round_index: int, block: int, slices: Iterable[Slice]
    ) -> None:
        """Write the counts of slices of a block, which are known once the round's logs have been read."""
        where = (experiment_id, workload, round_index, block)
        rows = [(one.completed, one.latencies, *where, one.arm, one.start_ns) for one in slices]
        with self._transaction() as connection:
            connection.executemany(_ADD_COUNT, rows)

    def add_blocks(self, experiment_id: str, blocks: Iterable[Block]) -> None:
        """Write the blocks of a round."""
        rows = [(experiment_id, b.workload, b.round, b.index, _readable(_BLOCK, b)) for b in blocks]
        with self._transaction() as connection:
            connection.executemany("INSERT OR REPLACE INTO block VALUES (?, ?, ?, ?, ?)", rows)

    def add_imported(
        self, experiment: Experiment, slices: Iterable[tuple[Place, Slice]], origin: Origin
    ) -> None:
        """Write an experiment of another store atomically. Its figures are finite, being from a bundle.

        Raises: StorageError if the id exists already, or if it cannot be written.
        """
        key = experiment.id
        blocks = ((key, b.workload, b.round, b.index, _document(_BLOCK, b)) for b in experiment.blocks)
        document = _document(_EXPERIMENT, replace(experiment, blocks=()))
        try:
            with self._transaction() as connection:
                connection.execute(
                    "INSERT INTO experiment VALUES (?, ?, ?)", (key, experiment.created, document)
                )
                connection.executemany("INSERT INTO block VALUES (?, ?, ?, ?, ?)", blocks)
                connection.executemany(_ADD_SLICE, (_slice_row(key, place, one) for place, one in slices))
                connection.execute(
                    "INSERT INTO imported VALUES (?, ?, ?)", (key, origin.imported, origin.bundle_sha256)
                )
        except sqlite3.DatabaseError as error:
            raise StorageError("could not write to the store", detail=str(error)) from error

    def origins(self) -> dict[str, Origin]:
        """Return the origins of imported experiments, by id."""
        rows = self._connection.execute("SELECT experiment, imported, bundle_sha256 FROM imported")
        return {key: Origin(*origin) for key, *origin in rows}

    def load(self, experiment_id: str) -> Experiment:
        """Return an experiment with all its blocks.

        Raises: StorageError if the id does not exist, or if it cannot be read.
        """
        head = self.load_head(experiment_id)
        rows = self._connection.execute(
            "SELECT document FROM block WHERE experiment = ? ORDER BY round, workload, block",
            (experiment_id,),
        )
        return replace(head, blocks=tuple(_read(_BLOCK, document, experiment_id) for (document,) in rows))

    def load_head(self, experiment_id: str) -> Experiment:
        """Return an experiment without its blocks. Raises: as ``load``."""
        self.require(experiment_id)
        query = "SELECT document FROM experiment WHERE id = ?"
        (document,) = self._connection.execute(query, (experiment_id,)).fetchone()
        return _read(_EXPERIMENT, document, experiment_id)

    def require(self, experiment_id: str) -> None:
        """Raise StorageError if no experiment has this id."""
        if not self.has(experiment_id):
            newest = ", ".join(self.ids()[:5]) or "none"
            raise StorageError(f'no experiment "{experiment_id}"', detail=f"the newest are: {newest}")

    def delete(self, experiment_id: str) -> None:
        """Remove an experiment with its series, atomically."""
        try:
            with self._transaction() as connection:
                for table in ("slice", "block", "imported"):
                    connection.execute(f"DELETE FROM {table} WHERE experiment = ?", (experiment_id,))  # noqa: S608
                connection.execute("DELETE FROM experiment WHERE id = ?", (experiment_id,))
        except sqlite3.DatabaseError as error:
            raise StorageError("could not write to the store", detail=str(error)) from error

    def slices(self, experiment_id: str, workload: str, round_index: int, block: int) -> tuple[Slice, ...]:
        """Return a block's slices in the order in which they ran."""
        with closing(self._connection.cursor()) as cursor:
            rows = cursor.execute(
                "SELECT arm, start_ns, end_ns, server_cpu_ns, drained_ns, steal_share, foreign_cpu_share,"
                " completed, latencies, apart_ns FROM slice"
                " WHERE experiment = ? AND workload = ? AND round = ? AND block = ? ORDER BY rowid",
                (experiment_id, workload, round_index, block),
            )
            return tuple(
                Slice(arm, start, end, tuple(int(n) for n in cpu.split(",")), *others)
                for arm, start, end, cpu, *others in rows
            )

    def unread(self, experiment_id: str) -> list[Place]:
        """Return the places with slices but without a block: those of rounds whose logs were never read."""
        rows = self._connection.execute(
            "SELECT DISTINCT s.workload, s.round, s.block FROM slice s WHERE s.experiment = ?"
            " AND NOT EXISTS (SELECT 1 FROM block b WHERE (b.experiment, b.workload, b.round, b.block)"
            " = (s.experiment, s.workload, s.round, s.block)) ORDER BY 1, 2, 3",
            (experiment_id,),
        )
        return [Place(*row) for row in rows]

    def forget_slices(self, experiment_id: str, places: Iterable[Place]) -> None:
        """Remove slices whose block will be measured again."""
        with self._transaction() as connection:
            connection.executemany(
                "DELETE FROM slice WHERE experiment = ? AND workload = ? AND round = ? AND block = ?",
                [(experiment_id, p.workload, p.round, p.block) for p in places],
            )

    def has(self, experiment_id: str) -> bool:
        """Whether an experiment has this id."""
        row = self._connection.execute("SELECT 1 FROM experiment WHERE id = ?", (experiment_id,)).fetchone()
        return row is not None

    def ids(self) -> list[str]:
        """Return all experiments, the newest first."""
        rows = self._connection.execute("SELECT id FROM experiment ORDER BY created DESC, rowid DESC")
        return [row[0] for row in rows]

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Run a transaction. It begins explicitly: sqlite3 without isolation level is in autocommit mode."""
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection:  # commits, or rolls back on an exception
            yield self._connection

    def _execute(self, sql: str, values: tuple[object, ...]) -> None:
        try:
            self._connection.execute(sql, values)
        except sqlite3.OperationalError as error:
            raise StorageError("could not write to the store", detail=str(error)) from error


def _readable(adapter: TypeAdapter[_T], thing: _T) -> str:
    """Return a document that can be read again. Raises: StorageError for an infinite figure or NaN."""
    document = _document(adapter, thing)
    try:
        adapter.validate_json(document)  # such figures are null in it, which only optional members allow
    except ValidationError as error:
        raise StorageError("the experiment cannot be stored", detail=problems(error)) from error
    return document


def _document(adapter: TypeAdapter[_T], thing: _T) -> str:
    try:
        return adapter.dump_json(thing).decode()
    except PydanticSerializationError as error:  # a lone surrogate
        raise StorageError("the experiment cannot be stored", detail=str(error)) from error


def _read(adapter: TypeAdapter[_T], document: str, experiment_id: str) -> _T:
    try:
        return adapter.validate_json(document)
    except ValidationError as error:
        raise StorageError(
            f'the experiment "{experiment_id}" cannot be read',
            detail=problems(error),
            hint="upgrade pgdyno if a newer version stored it; otherwise: "
            f"pgdyno experiments delete {experiment_id}",
        ) from error


def _slice_row(experiment_id: str, place: Place, done: Slice) -> tuple[object, ...]:
    cpu = ",".join(map(str, done.server_cpu_ns))
    where = (experiment_id, place.workload, place.round, place.block)
    shares, counts = (done.steal_share, done.foreign_cpu_share), (done.completed, done.latencies)
    when = (done.arm, done.start_ns, done.end_ns, cpu, done.drained_ns)
    return (*where, *when, *shares, *counts, done.apart_ns)


def _opened(path: Path) -> tuple[sqlite3.Connection, int]:
    """Return a connection to the file, in autocommit mode, and the file's version, 0 if new.

    Raises: StorageError if a newer pgdyno has written it; sqlite3.DatabaseError.
    """
    connection = sqlite3.connect(path, isolation_level=None)  # waits up to 5 s for another writer
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if found > _VERSION:
        raise StorageError(
            f'the store "{path}" was written by a newer pgdyno',
            detail=f"its version is {found}, this pgdyno reads up to {_VERSION}",
            hint="upgrade pgdyno",
        )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection, found


def open_store() -> ExperimentStore:
    """Open the store of this user's experiments."""
    return ExperimentStore(workspace().experiments() / "experiments.sqlite")
