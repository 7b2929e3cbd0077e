"""A copy with a share of a database's rows, and with the referenced row of every foreign key.

All tables are read in one snapshot. Each table is read once, for rows sampled by a hash of its key or along
with the rows that they reference. Then missing referenced rows are read by their keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.base import numbers
from pgdyno.base.errors import UsageError
from pgdyno.base.ports import Progress
from pgdyno.base.time_left import TimeLeft
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.postgres.catalogued_tables import Link, LinkedTable
from pgdyno.postgres.connection.connection import dsn_of, encoding_of
from pgdyno.postgres.connection.privileges import require_powerless
from pgdyno.postgres.inspection.linked_tables import (
    LinkedTables,
    has_large_objects,
    read_linked_tables,
    read_sequences,
)
from pgdyno.postgres.inspection.table_statistics import filled_views
from pgdyno.postgres.process.dump import DumpRequest, dump_database, restore_all_keys, restore_tables
from pgdyno.postgres.process.instance import DATABASE, Instance
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import find_installation
from pgdyno.postgres.process.row_source import RowSource
from pgdyno.postgres.process.sample_queries import SampledCopy, Sampling, rows_of_keys
from pgdyno.postgres.process.synthetic_copy import MadeUpCopy
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
from pgdyno.workload.subset.completion import OpenLinks
from pgdyno.workload.subset.plan import TableSample, plan_sample

_GROWN = 1.2  # arbitrary: a note lists tables with more than a fifth of rows added for foreign keys
_MOST_NAMED = 8


@dataclass(frozen=True)
class SampleRequest:
    """A workload's file, its database, and the share of rows. ``start`` is the table to sample first."""

    file: Path
    dsn: str
    share: float
    bytes_per_s: float
    start: str | None = None
    seed: int = 1


@dataclass(frozen=True)
class _Original:
    """Catalogue of the original database."""

    major: int
    linked: LinkedTables
    views: tuple[tuple[str, str], ...]
    sequences: Mapping[tuple[str, str], int]
    has_large_objects: bool


def sampled_copy(workload: CapturedWorkload, request: SampleRequest, progress: Progress) -> ScratchCopy:
    """Copy a share of the rows of a workload's database.

    Raises: UsageError for a different database, an existing copy, or an unknown table; PrivilegeError and
    RefusedError for rows hidden from the role; StorageError; ServerError if a key cannot be made;
    ConnectionFailedError.
    """
    target, place = new_copy_of(request.file), workspace()
    with ExitStack() as reading:
        source = reading.enter_context(RowSource.open(request.dsn, request.bytes_per_s))
        require_original(source.connection, workload, request.file)
        require_powerless(source.connection, "rows would be selected, and their keys compared")
        original = _read(source)
        plan = plan_sample(*original.linked, _start(original.linked.tables, request.start))
        require_room(place, target, round(sum(_size_bytes(one, request.share) for one in plan)))
        programs = programs_for(original.major)
        pg_dump = programs.bin_directory / "pg_dump"
        filling = _Filling(source, Sampling(request.share, request.seed), plan, progress)
        with place.measuring(), place.scratch() as scratch:
            schema = scratch / "schema.dump"
            progress.step("copying the schema")
            dump_database(
                DumpRequest(
                    dsn_of(source.connection, request.dsn), pg_dump, schema, SCHEMA_BYTES_PER_S,
                    encoding_of(source.connection), is_schema_only=True, snapshot=source.snapshot,
                ),
                lambda _: None,
            )  # fmt: skip
            with scratch_server(place, scratch, find_installation(programs.name, place), schema) as server:
                left_out = restore_tables(server, DATABASE, schema)
                filling.fill(server, original.linked.links, left_out)
                reading.close()  # ends the snapshot, which held back vacuum on the original
                progress.step("making indexes and keys")
                restore_all_keys(server, DATABASE, schema, left_out)
                notes = [*(f"the copy lacks {one}" for one in left_out), *_finish(server, original)]
                progress.step(f"writing {target}")
                dump_scratch(server, pg_dump, target, _description(request.share))
    all_notes = (*_sample_notes(request.share, original), *filling.notes(), *notes)
    return ScratchCopy(target, filling.rows, all_notes)


def _read(source: RowSource) -> _Original:
    connection = source.connection
    linked = read_linked_tables(connection)
    source.keep(linked.tables)
    return _Original(
        connection.info.server_version // 10_000,
        linked,
        filled_views(connection),
        read_sequences(connection),
        has_large_objects(connection),
    )


def _finish(server: Instance, original: _Original) -> list[str]:
    copy = MadeUpCopy.open(server, DATABASE)
    with closing(copy.connection):
        # First let_dump: forced policies hide rows, or fail without the application's settings.
        notes = [*copy.let_dump(), *copy.set_sequences()]
        SampledCopy(copy.connection).set_sequences(original.sequences)
        return [*notes, *copy.refresh(original.views)]


def _start(tables: Sequence[LinkedTable], name: str | None) -> int | None:
    """Return the OID of a table, in schema public if its name has no schema. Raises: UsageError."""
    if name is None:
        return None
    path = name if "." in name else f"public.{name}"
    found = [one.oid for one in tables if one.path == path]
    if not found:
        raise UsageError(f'table "{path}" does not exist', hint="write --sample-from SCHEMA.TABLE")
    return found[0]


def _size_bytes(sample: TableSample, share: float) -> float:
    return sample.table.size_bytes * (1.0 if sample.is_whole else share)


def _description(share: float) -> str:
    return f"a sample of {numbers.share(share)} of the original's rows; {SMALLER}"


def _sample_notes(share: float, original: _Original) -> Iterator[str]:
    yield f"the copy contains {_description(share)}"
    if original.has_large_objects:
        yield "the copy lacks large objects"


@dataclass
class _Filling:
    """Fills the copy, and counts its rows by table; ``added`` counts rows added for foreign keys."""

    source: RowSource
    sampling: Sampling
    plan: Sequence[TableSample]
    progress: Progress
    rows: dict[str, int] = field(default_factory=dict)
    added: dict[str, int] = field(default_factory=dict)

    def fill(self, server: Instance, links: Sequence[Link], left_out: Sequence[str]) -> None:
        """Fill all tables, then add missing referenced rows. Raises: ServerError, ConnectionFailedError."""
        copy = SampledCopy.open(server, DATABASE, left_out)
        with closing(copy.connection):
            total, done, left = max(1.0, sum(map(self._bytes, self.plan))), 0.0, TimeLeft(self.progress)
            for one in self.plan:
                self.progress.step(f"copying {one.table.path}{_following(one)}")
                self.rows[one.table.path] = sum(
                    copy.load(one.table, self._read(one, place)) for place in range(len(one.choices))
                )
                done += self._bytes(one)
                left.report(done / total)
            self._complete(copy, links)

    def notes(self) -> Iterator[str]:
        """Yield notes on tables with many more rows than their share."""
        grown = [
            path for path, count in self.added.items() if self.rows[path] > _GROWN * (self.rows[path] - count)
        ]
        for path in sorted(grown, key=lambda one: -self.added[one])[:_MOST_NAMED]:
            added, rows = f"{self.added[path]:,}", f"{self.rows[path]:,}"
            yield f"{path}: {added} of {rows} rows were added because other rows reference them"
        if len(grown) > _MOST_NAMED:
            yield f"rows were added to {len(grown) - _MOST_NAMED} more tables"

    def _read(self, sample: TableSample, place: int) -> Iterator[bytes]:
        query = self.sampling.rows(sample.table, sample.choices[place])
        return self.source.rows(query, 1.0 if sample.is_whole else self.sampling.share)

    def _rows_of(self, link: Link, target: LinkedTable, keys: Sequence[Sequence[bytes]]) -> Iterator[bytes]:
        return self.source.rows(rows_of_keys(link, target, keys), 1.0)

    def _complete(self, copy: SampledCopy, links: Sequence[Link]) -> None:
        tables = {one.table.oid: one.table for one in self.plan}
        open_links = OpenLinks(links, {one.table.oid for one in self.plan if one.is_whole})
        reported = set[int]()
        while (link := open_links.take()) is not None:
            target = tables[link.target_table]
            if target.oid not in reported:
                self.progress.step(f"completing {target.path}")
            reported.add(target.oid)
            added = copy.complete(link, target, self._rows_of)
            if added:
                self.rows[target.path] += added
                self.added[target.path] = self.added.get(target.path, 0) + added
                open_links.gained(target.oid)

    def _bytes(self, sample: TableSample) -> float:
        return sample.table.size_bytes


def _following(sample: TableSample) -> str:
    return "" if sample.follows is None else f" for sampled rows of {sample.follows.target.path}"
