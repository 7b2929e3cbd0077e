"""A copy made on a private scratch server; pg_dump then writes it into the directory of the workload's file.

The unprivileged role that restores every copy also makes it: it restores the schema, loads rows into the
tables, and then makes indexes and keys.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base import numbers
from pgdyno.base.errors import StorageError, UsageError
from pgdyno.postgres.connection.libpq_environment import libpq_variables_unset
from pgdyno.postgres.process.dump import COPY_ROLE, DumpRequest, create_database, dump_database
from pgdyno.postgres.process.installation import Installation
from pgdyno.postgres.process.instance import DATABASE, Instance, initialise
from pgdyno.postgres.process.workspace import Workspace
from pgdyno.workload.workload_choice import DUMP_SUFFIX, write_copy_note

_PORT = 5432  # any: the socket directory is private
_WAL_BYTES = 1 << 30  # maximum size of a freshly loaded data directory without its rows
_ANY_RATE = 1e12  # no limit for reading the scratch server
_SETTINGS = {
    "max_wal_size": "4GB", "maintenance_work_mem": "256MB", "work_mem": "64MB", "autovacuum": "off",
}  # fmt: skip
SCHEMA_BYTES_PER_S = 50e6
SMALLER = "tables and indexes are smaller, more of them fits in memory, and plans may differ"


@dataclass(frozen=True)
class ScratchCopy:
    """The file with the copy, its number of rows by table, and notes on differences from the original."""

    dump: Path
    rows: dict[str, int]
    notes: tuple[str, ...]


def new_copy_of(file: Path) -> Path:
    """Return the path for the copy of a workload's database. Raises: UsageError if it exists."""
    target = file.with_suffix(DUMP_SUFFIX)
    if target.exists():
        raise UsageError(f'"{target}" already exists', hint="--replace replaces it")
    return target


def require_room(place: Workspace, target: Path, size_bytes: int) -> None:
    """Raise StorageError if there is no room for a scratch server of this size, or for the dump."""
    place.require_free(
        2 * size_bytes + _WAL_BYTES, "the rows", "choose a smaller --share, or set PGDYNO_HOME"
    )
    free_bytes = shutil.disk_usage(target.absolute().parent).free
    if free_bytes < size_bytes:
        raise StorageError(
            f'not enough disk space for "{target}"',
            detail=f"up to {numbers.size(size_bytes)} needed, {numbers.size(free_bytes)} free",
            hint="choose a smaller --share, or copy the workload's file to a larger disk",
        )


@contextmanager
def scratch_server(
    place: Workspace, scratch: Path, installation: Installation, schema: Path
) -> Iterator[Instance]:
    """Start a private server for the duration of a context, with an empty database like that of a dump.

    Raises: ServerError if the server does not have the database's locale.
    """
    data_directory = scratch / "copy"
    initialise(installation, place.account, data_directory)
    with place.sockets(scratch) as sockets, libpq_variables_unset():
        server = Instance(
            installation, place.account, data_directory, sockets, _PORT, _SETTINGS, has_network=False
        )
        with server.running(is_immediate=True):
            create_database(server, DATABASE, schema)
            yield server


def dump_scratch(server: Instance, pg_dump: Path, target: Path, words: str) -> None:
    """Write the copy, and ``words`` as a note on its rows. Raises: ServerError, StorageError."""
    dsn = f"host={server.host} port={server.port} user={COPY_ROLE} dbname={DATABASE}"
    dump_database(DumpRequest(dsn, pg_dump, target, _ANY_RATE), lambda _: None)
    write_copy_note(target, words)
