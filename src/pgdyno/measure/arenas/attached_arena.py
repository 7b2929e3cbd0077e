"""An arena on an attached server: measured as found, or with one configuration after the other.

It puts load on that server, and restarts it if a changed setting needs that: only if the user allowed both.
Every change has a receipt. Data sets are in separate databases, which are dropped at the end. The original
configuration is restored; if pgdyno is killed, ``pgdyno revert`` restores it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from pgdyno.base import numbers
from pgdyno.base.errors import RefusedError
from pgdyno.base.ports import Progress
from pgdyno.load._contract import Target
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.arenas.attached_server import AttachedBase, AttachedServer
from pgdyno.measure.arenas.load import Loads
from pgdyno.model.experiments.workload import DataSet
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.process.workload_databases import WorkloadDatabases


class Switching(Protocol):
    """Switches a server between variants."""

    def to(self, variant: Variant) -> None:
        """Switch to a variant. Raises: the errors of apply and revert."""
        ...

    def back(self) -> None:
        """Restore the original configuration.

        Raises: StillChangedError if it was changed by others.
        """
        ...


class AsFound:
    """Leaves a server as it was found."""

    def to(self, variant: Variant) -> None:
        """Do nothing: the server already runs its one variant."""

    def back(self) -> None:
        """Do nothing."""


@dataclass
class AttachedArena(AttachedBase):
    """One running server; a seat is a database on it."""

    find: Callable[[], tuple[AttachedServer, Mapping[str, str]]]  # server, environment for generators
    switch: Switching
    databases: WorkloadDatabases
    loads: Loads
    progress: Progress
    _templates: dict[str, str] = field(default_factory=dict, init=False)  # database by data set

    def load(self, _variant: Variant, data_set: DataSet) -> None:
        """Load the data set into a database that is copied for each seat."""
        if data_set.key in self._templates:
            return
        if data_set.dump is not None:
            raise RefusedError(
                "a copy of a database can only be restored on servers that pgdyno starts",
                detail="a dump contains its owners' code, and the load has your role's privileges there",
                hint="leave out --allow-load",
            )
        server, environment = self.find()
        self.progress.step(f"loading {data_set.name}, {numbers.size(data_set.size_bytes)}")
        template = self.databases.create(f"template_{len(self._templates)}")
        target = Target(server.host, server.port, server.user, template)
        self.loads.fill(target, data_set, self.loads.scratch / "load.log", environment)
        self.databases.finish_load(template)
        self._templates[data_set.key] = template

    def has_seats(self, _variants: Sequence[Variant], seats: Sequence[int], data_set: DataSet) -> bool:
        """Whether every seat's database exists."""
        names = {self.databases.name(self._label(seat, data_set)) for seat in seats}
        return names <= self.databases.there()

    def restore(
        self,
        _variants: Sequence[Variant],
        seats: Sequence[int],
        data_set: DataSet,
        _writing_s: float = 0.0,  # the server's WAL is not prepared
    ) -> None:
        """Copy the data set's template to every seat's database."""
        for seat in seats:
            self.databases.copy(self._templates[data_set.key], self._label(seat, data_set))

    @contextmanager
    def arms(
        self,
        variants: Sequence[Variant],
        seats: Sequence[int],
        data_set: DataSet,
        server_memory_bytes: int | None = None,  # noqa: ARG002 — rejected by memory_note
    ) -> Iterator[list[Arm]]:
        """Switch the server to the single variant, and back afterwards.

        Copying data and other work use the configuration as found.
        """
        (variant,), (seat,) = variants, seats
        self.switch.to(variant)
        try:
            self.databases.hold()  # a restart ends the session
            server, environment = self.find()
            database = self.databases.name(self._label(seat, data_set))
            with closing(Arm(variant, server, database, environment)) as arm:
                arm.prewarm()
                arm.checkpoint()  # pages dirtied by copying are not part of the trial
                yield [arm]
        finally:
            self.switch.back()

    def leave(self) -> None:
        """Restore the original configuration, and drop the created databases."""
        try:
            self.switch.back()
        finally:
            self.databases.drop_all()

    def _label(self, seat: int, data_set: DataSet) -> str:
        return f"seat_{list(self._templates).index(data_set.key)}_{seat}"
