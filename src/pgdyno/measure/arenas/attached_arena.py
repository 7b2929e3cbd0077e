"""An arena on an attached server, in place.

The server is measured as found, or with one configuration after the other.

It loads that server, and restarts it where a changed setting takes that: only for owners who have allowed
both; every change has a receipt. Data sets live in databases of their own, which are dropped at the end; the
configuration goes back to what was found. If pgdyno is killed, ``pgdyno revert`` restores the configuration.
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

        Raises: StillChangedError if somebody else has changed it.
        """
        ...


class AsFound:
    """For a server that stays as it was found."""

    def to(self, variant: Variant) -> None:
        """Do nothing: the server already runs its one variant."""

    def back(self) -> None:
        """Leave it."""


@dataclass
class AttachedArena(AttachedBase):
    """One running server; a seat is a database on it."""

    find: Callable[[], tuple[AttachedServer, Mapping[str, str]]]  # and what generators need to get in
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
                "a copy of a database is restored on servers that pgdyno starts, not on a running one",
                detail="a dump has code of its owners, and the load runs with the rights of your role there",
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
        """Whether every seat's database is there."""
        names = {self.databases.name(self._label(seat, data_set)) for seat in seats}
        return names <= self.databases.there()

    def restore(
        self,
        _variants: Sequence[Variant],
        seats: Sequence[int],
        data_set: DataSet,
        _writing_s: float = 0.0,  # the server's WAL is its owner's
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
        server_memory_bytes: int | None = None,  # noqa: ARG002 — memory_note has refused it
    ) -> Iterator[list[Arm]]:
        """Bring the server to the one variant that there can be at a time, and back afterwards.

        Data are copied, and other work is done, under the configuration as found.
        """
        (variant,), (seat,) = variants, seats
        self.switch.to(variant)
        try:
            self.databases.hold()  # a restart has ended the session
            server, environment = self.find()
            database = self.databases.name(self._label(seat, data_set))
            with closing(Arm(variant, server, database, environment)) as arm:
                arm.prewarm()
                arm.checkpoint()  # what copying the data set has dirtied is not this trial's
                yield [arm]
        finally:
            self.switch.back()

    def leave(self) -> None:
        """Restore the original configuration, and drop the databases that were made."""
        try:
            self.switch.back()
        finally:
            self.databases.drop_all()

    def _label(self, seat: int, data_set: DataSet) -> str:
        """Return a seat's database within this run."""
        return f"seat_{list(self._templates).index(data_set.key)}_{seat}"
