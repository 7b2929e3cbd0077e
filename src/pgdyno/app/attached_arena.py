"""An arena on someone's running server itself: one configuration after the other, each change with a receipt.

It loads that server, and restarts it where a changed setting takes that: only for owners who have allowed
both. Data sets live in databases of their own, which are dropped at the end; the configuration goes back to
what was found. If pgdyno is killed, ``pgdyno revert`` restores the configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from pgdyno.app.arm import Arm
from pgdyno.app.attached_server import AttachedServer
from pgdyno.app.load import Loads
from pgdyno.generators._contract import Target
from pgdyno.model.errors import UsageError
from pgdyno.model.ports import Progress
from pgdyno.model.study import Study
from pgdyno.model.variant import Variant
from pgdyno.model.workload import DataSet
from pgdyno.server.workload_databases import WorkloadDatabases

_LOAD_TIMEOUT_S = 3600.0


class Switching(Protocol):
    """What brings a server to a variant."""

    def to(self, variant: Variant) -> None:
        """Bring it there. Raises: what apply and revert raise."""
        ...

    def back(self) -> None:
        """Bring it back to what was found. Raises: StillChangedError if somebody else has changed it."""
        ...


class AsFound:
    """For a server that stays as it was found."""

    def to(self, variant: Variant) -> None:
        """Leave it: its one variant is what it runs."""

    def back(self) -> None:
        """Leave it."""


@dataclass
class AttachedArena:
    """One running server; a seat is a database on it."""

    find: Callable[[], tuple[AttachedServer, Mapping[str, str]]]  # and what generators need to get in
    switch: Switching
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
        server, environment = self.find()
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
        server, environment = self.find()
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
