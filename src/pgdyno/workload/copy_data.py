"""Copy a workload's database with pg_dump, at a limited rate, into the directory of the workload's file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base import numbers
from pgdyno.base.errors import ServerError, UsageError
from pgdyno.base.ports import Progress
from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.postgres.connection.connection import (
    Connection,
    connect,
    dsn_of,
    encoding_of,
    require_no_pooler,
)
from pgdyno.postgres.inspection.columns import read_identity
from pgdyno.postgres.process.dump import DumpRequest, dump_database
from pgdyno.postgres.process.installation import EMBEDDED, embedded_installation
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.postgres.process.registry import RegisteredServer, registered_servers
from pgdyno.workload.workload_choice import DUMP_SUFFIX

_PACKAGED = re.compile(r"(?:debian|pgdg)-(\d+)$")


@dataclass(frozen=True)
class CopyRequest:
    """A workload's file, the DSN of its database, and the rate limit for reading it."""

    file: Path
    dsn: str
    bytes_per_s: float


def copy_data(workload: CapturedWorkload, request: CopyRequest, progress: Progress) -> Path:
    """Return the file with the copy. Only its owner can read it, since it contains the rows.

    Raises: UsageError if it is not the workload's database; ServerError, ConnectionFailedError, StorageError.
    """
    with closing(connect(request.dsn)) as connection:
        require_original(connection, workload, request.file)
        major = connection.info.server_version // 10_000
        dsn, encoding = dsn_of(connection, request.dsn), encoding_of(connection)
    target = request.file.with_suffix(DUMP_SUFFIX)
    pg_dump = programs_for(major).bin_directory / "pg_dump"
    progress.step(f"copying {workload.database}")
    dump_database(
        DumpRequest(dsn, pg_dump, target, request.bytes_per_s, encoding),
        lambda done: progress.step(f"copying {workload.database}: {numbers.size(done)}"),
    )
    return target


@contextmanager
def replacing(copy: Path) -> Iterator[None]:
    """Replace an existing copy by one written in the context; restore it if that fails."""
    former = copy.with_name(f"{copy.name}.former")
    is_there = copy.exists()
    if is_there:
        copy.replace(former)
    is_done = False
    try:
        yield
        is_done = True
    finally:
        if is_there and is_done:
            former.unlink()
        elif is_there:
            former.replace(copy)


def require_original(connection: Connection, workload: CapturedWorkload, file: Path) -> None:
    """Raise UsageError unless this is the database that a workload was captured from.

    Raises: RefusedError behind a pooler, since pg_dump leaves its settings in the session.
    """
    require_no_pooler(connection)
    found = read_identity(connection)
    if found != (workload.cluster, workload.database):
        raise UsageError(
            f'database "{found[1]}" is not the one that "{file}" was captured from',
            detail=f'captured from "{workload.database}" of cluster {workload.cluster}, this is cluster '
            f"{found[0]}",
        )


def programs_for(major: int) -> RegisteredServer:
    """Return the server with pg_dump of a major version, or of the next later one installed.

    Only servers from packages or the wheel are used: programs built here do not run with this user's rights.
    Raises: ServerError.
    """
    found: dict[int, RegisteredServer] = {}
    for server in registered_servers(workspace()):
        packaged = _PACKAGED.match(server.name)
        if (server.bin_directory / "pg_dump").is_file() and (packaged or server.name == EMBEDDED):
            version = int(packaged[1]) if packaged else embedded_installation(workspace()).major
            if version >= major:
                found[version] = server  # packages come after the wheel and take precedence
    if not found:
        raise ServerError(
            f"no pg_dump of PostgreSQL {major} or later is installed",
            hint=f"install PostgreSQL's client programs (apt install postgresql-client-{major})",
        )
    return found[min(found)]
