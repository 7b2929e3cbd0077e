"""A copy of a database with generated rows that have the distributions in its statistics.

The schema is restored on a private scratch server and filled with rows, and pg_dump makes the copy. All steps
run as the unprivileged role that restores every copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base import numbers
from pgdyno.base.ports import Progress
from pgdyno.base.time_left import TimeLeft
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.postgres.catalogued_tables import StoredTable
from pgdyno.postgres.connection.connection import connect, dsn_of, encoding_of
from pgdyno.postgres.inspection.table_statistics import FORMS_OF_VALUES, filled_views, read_table_statistics
from pgdyno.postgres.process.dump import DumpRequest, dump_database, restore_keys, restore_tables
from pgdyno.postgres.process.instance import DATABASE, Instance
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import find_installation
from pgdyno.postgres.process.synthetic_copy import MadeUpCopy, TableTarget
from pgdyno.workload.copy_data import programs_for, require_original
from pgdyno.workload.scratch_copy import (
    SCHEMA_BYTES_PER_S,
    SMALLER,
    ScratchCopy,
    dump_scratch,
    new_copy_of,
    require_room,
    scratch_server,
)
from pgdyno.workload.synthesis.database import MadeUpDatabase
from pgdyno.workload.synthesis.gaps import gaps


@dataclass(frozen=True)
class SyntheticRequest:
    """A workload's file, the DSN of its database, the share of rows to generate, and a seed."""

    file: Path
    dsn: str
    share: float = 1.0
    seed: int = 1


@dataclass(frozen=True)
class _Original:
    """Catalogue and statistics of the original database, and its DSN."""

    dsn: str
    major: int
    encoding: str
    tables: tuple[StoredTable, ...]
    views: tuple[tuple[str, str], ...]


def synthetic_copy(workload: CapturedWorkload, request: SyntheticRequest, progress: Progress) -> ScratchCopy:
    """Generate a copy of a workload's database from its schema and statistics, without reading its tables.

    Raises: UsageError for a different database or an existing copy; StorageError without enough disk space;
    ServerError, ConnectionFailedError.
    """
    target = new_copy_of(request.file)
    progress.step(f"reading statistics of {workload.database}")
    original = _read(workload, request)
    made = MadeUpDatabase(original.tables, request.share, request.seed)
    place = workspace()
    programs = programs_for(original.major)
    require_room(place, target, _size_bytes(original.tables, made))
    with place.measuring(), place.scratch() as scratch:
        schema = scratch / "schema.dump"
        progress.step("copying the schema")
        pg_dump = programs.bin_directory / "pg_dump"
        dump_database(
            DumpRequest(
                original.dsn, pg_dump, schema, SCHEMA_BYTES_PER_S, original.encoding, is_schema_only=True
            ),
            lambda _: None,
        )
        installation = find_installation(programs.name, place)
        with scratch_server(place, scratch, installation, schema) as server:
            left_out = restore_tables(server, DATABASE, schema)
            rows, fill_notes = _fill(server, original, made, progress, left_out)
            notes = [*(f"the copy lacks {one}" for one in left_out), *fill_notes]
            progress.step("making indexes and keys")
            notes += [
                f"left out, since made-up rows violate it: {one}"
                for one in restore_keys(server, DATABASE, schema, left_out)
            ]
            notes += _finish(server, original)
            progress.step(f"writing {target}")
            dump_scratch(server, pg_dump, target, _description(request.share))
    return ScratchCopy(target, rows, (*gaps(original.tables), *notes))


def _description(share: float) -> str:
    if share == 1:
        return "made-up rows"
    return f"made-up rows, {numbers.share(share)} of the original's number; {SMALLER}"


def _read(workload: CapturedWorkload, request: SyntheticRequest) -> _Original:
    with closing(connect(request.dsn, settings=FORMS_OF_VALUES)) as connection:
        require_original(connection, workload, request.file)
        return _Original(
            dsn_of(connection, request.dsn),
            connection.info.server_version // 10_000,
            encoding_of(connection),
            read_table_statistics(connection),
            filled_views(connection),
        )


def _size_bytes(tables: Sequence[StoredTable], made: MadeUpDatabase) -> int:
    size_bytes = 0
    for one in tables:
        rows = made.rows_of(one)
        as_original = one.size_bytes * min(1.0, rows / one.rows) if one.rows else 0
        size_bytes += max(round(as_original), rows * made.row_bytes(one))
    return size_bytes


def _fill(
    server: Instance,
    original: _Original,
    made: MadeUpDatabase,
    progress: Progress,
    left_out: Sequence[str],
) -> tuple[dict[str, int], list[str]]:
    """Fill all tables with rows; return their number by table, and notes."""
    total = max(1, sum(map(made.rows_of, original.tables)))
    left, done, rows, notes = TimeLeft(progress), 0, dict[str, int](), list[str]()

    def report(count: int) -> None:
        nonlocal done
        done += count
        left.report(min(1.0, done / total))

    copy = MadeUpCopy.open(server, DATABASE, left_out)
    with closing(copy.connection):
        for table in original.tables:
            progress.step(f"making up {table.path}: {made.rows_of(table):,} rows")
            drawn = made.table(table.oid)
            loaded = copy.fill(TableTarget(table.schema, table.name, drawn.columns), drawn.blocks, report)
            rows[table.path] = loaded.rows
            notes += loaded.notes
    return rows, notes


def _finish(server: Instance, original: _Original) -> list[str]:
    copy = MadeUpCopy.open(server, DATABASE)
    with closing(copy.connection):
        # First let_dump: forced policies hide rows, or fail without the application's settings.
        return [*copy.let_dump(), *copy.set_sequences(), *copy.refresh(original.views)]
