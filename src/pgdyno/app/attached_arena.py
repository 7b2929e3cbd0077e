"""An arena on someone's running server itself: one configuration after the other, each change with a receipt.

It loads that server, and restarts it where a changed setting takes that: only for owners who have allowed
both. Data sets live in databases of their own, which are dropped at the end; the configuration goes back to
what was found. If pgdyno is killed, ``pgdyno revert`` restores the configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg.conninfo import make_conninfo

from pgdyno.app.arm import Arm
from pgdyno.app.attached_switch import Switch
from pgdyno.app.load import Loads
from pgdyno.generators._contract import Target
from pgdyno.host.colocation import find_postmaster
from pgdyno.model.errors import ServerError, UsageError
from pgdyno.model.facts import Unknown
from pgdyno.model.ports import Progress
from pgdyno.model.study import Study
from pgdyno.model.variant import Variant
from pgdyno.model.workload import DataSet
from pgdyno.server.connection import connect
from pgdyno.server.inspection import identify_backend
from pgdyno.server.workload_databases import WorkloadDatabases

_LOAD_TIMEOUT_S = 3600.0


@dataclass(frozen=True)
class AttachedServer:
    """Someone's server as an arm sees it: it is neither started nor stopped."""

    dsn: str
    host: str
    port: int
    user: str
    pid: int

    def connect(self, database: str) -> psycopg.Connection:
        """Open a control connection without pgdyno's usual time limits: a checkpoint may take its time."""
        return psycopg.connect(make_conninfo(self.dsn, dbname=database), autocommit=True)

    def last_log_lines(self) -> str:
        """Say where to look."""
        return "its own log says why"

    def stop(self, *, is_immediate: bool = False) -> None:
        """Leave it running."""


@dataclass
class AttachedArena:
    """One running server; a seat is a database on it."""

    dsn: str
    data_directory: str
    switch: Switch
    databases: WorkloadDatabases
    loads: Loads
    progress: Progress
    _templates: dict[str, str] = field(default_factory=dict, init=False)  # database by data set

    @property
    def installation_name(self) -> None:
        """No command line measures this server's configuration as it was found."""
        return

    def build_notes(self, _variants: Sequence[Variant]) -> tuple[str, ...]:
        """Say nothing: it is one server."""
        return ()

    def memory_note(self, limit_bytes: int) -> str:
        """Refuse: someone's server keeps the memory that it has. Raises: UsageError."""
        raise UsageError(
            f"the memory of a running server cannot be limited to {limit_bytes} bytes",
            hint="measure on servers that pgdyno starts: --embedded or --pg-bin",
        )

    def check(self, _variant: Variant, data_set: DataSet) -> None:
        """Load the data set. Settings are judged when they are applied, by the server itself."""
        if data_set.key in self._templates:
            return
        template = f"pgdyno_template_{len(self._templates)}"
        self.progress.step(f"loading {data_set.name}, {data_set.size_bytes / 1e6:.0f} MB")
        self.databases.create(template)
        server, environment = self._server()
        target = Target(server.host, server.port, server.user, template)
        self.loads.fill(target, data_set, self.loads.scratch / "load.log", environment)
        self.databases.finish_load(template)
        self._templates[data_set.key] = template

    def has_seats(self, _variants: Sequence[Variant], seats: Sequence[int], data_set: DataSet) -> bool:
        """Whether every seat's database is there."""
        return {self._database(seat, data_set) for seat in seats} <= set(self.databases.ours())

    def restore(self, _variants: Sequence[Variant], seats: Sequence[int], data_set: DataSet) -> None:
        """Copy the data set's template to every seat's database."""
        for seat in seats:
            self.databases.copy(self._templates[data_set.key], self._database(seat, data_set))

    def discard(self, _variants: Sequence[Variant], _seats: Sequence[int], _data_set: DataSet) -> None:
        """Leave it: the next copy takes its place, and the last one is dropped at the end."""

    @contextmanager
    def prepared_for(self, _study: Study) -> Iterator[AttachedArena]:
        """Provide the arena as it is: every trial makes its own configuration."""
        yield self

    @contextmanager
    def arms(
        self,
        variants: Sequence[Variant],
        seats: Sequence[int],
        data_set: DataSet,
        server_memory_bytes: int | None = None,  # noqa: ARG002 — memory_note has refused it
    ) -> Iterator[list[Arm]]:
        """Bring the server to the one variant that there can be at a time."""
        (variant,), (seat,) = variants, seats
        self.switch.to(variant)
        server, environment = self._server()
        arm = Arm(variant, server, self._database(seat, data_set), environment)
        try:
            arm.prewarm()
            arm.checkpoint()  # what copying the data set has dirtied is not this trial's
            yield [arm]
        finally:
            arm.close()

    def leave(self) -> None:
        """Give back the configuration that was found, and drop what was made."""
        try:
            self.switch.back()
        finally:
            self.databases.drop_all()

    def _database(self, seat: int, data_set: DataSet) -> str:
        return f"{self._templates[data_set.key].replace('template', 'seat')}_{seat}"

    def _server(self) -> tuple[AttachedServer, Mapping[str, str]]:
        """Find the server as it runs now, and what generators need in their environment to get in."""
        with closing(connect(self.dsn)) as connection:
            info, backend = connection.info, identify_backend(connection)
            postmaster = find_postmaster(
                Path("/"),
                backend_pid=backend.pid,
                backend_start=backend.start_s,
                data_directory=self.data_directory,
            )
            if isinstance(postmaster.value, Unknown):
                raise ServerError(
                    "the server is not proven to run on this host any more", detail=postmaster.value.reason
                )
            environment = {"PGPASSWORD": info.password} if info.password else {}
            return AttachedServer(self.dsn, info.host, info.port, info.user, postmaster.value), environment
