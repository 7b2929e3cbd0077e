"""The usual arena: scratch servers that pgdyno starts, side by side on byte-identical data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgdyno.app.arm import Arm
from pgdyno.app.builds import build_note
from pgdyno.app.datasets import DataSets
from pgdyno.app.load import Loads
from pgdyno.model.variant import Variant
from pgdyno.model.workload import DataSet
from pgdyno.server.installation import Installation
from pgdyno.server.instance import Instance
from pgdyno.server.workspace import Workspace

_FIRST_PORT = 5433  # any: the socket directory is private; one port per seat


def _title(installation: Installation) -> str:
    return f"PostgreSQL {installation.version} ({installation.name})"


@dataclass(frozen=True)
class ScratchArena:
    """Installations, data sets, and where scratch servers live.

    A seat is a data directory with its port. Arms change seats from round to round, so that the placement of
    a copy on disk is not taken for an effect. ``installation`` runs the variants that name no server of
    their own, ``servers`` the others; ``data_sets`` are loaded by each installation itself.
    """

    workspace: Workspace
    installation: Installation
    servers: Mapping[str, Installation]
    data_sets: DataSets
    sockets: Path
    loads: Loads

    @property
    def installation_name(self) -> str:
        """What runs variants that name no server."""
        return self.installation.name

    def installation_of(self, variant: Variant) -> Installation:
        """Return what a variant's server runs."""
        return self.installation if variant.server is None else self.servers[variant.server]

    def build_notes(self, variants: Sequence[Variant]) -> tuple[str, ...]:
        """Say what runs the variants, and how the builds differ besides their version."""
        if all(variant.server is None for variant in variants):
            return ()
        named = "; ".join(f"{v.name} is {_title(self.installation_of(v))}" for v in variants)
        first, *others = dict.fromkeys(self.installation_of(variant) for variant in variants)
        return (named, *(build_note(first, other, self.workspace.account) for other in others))

    def check(self, variant: Variant, data_set: DataSet) -> None:
        """Load the data set if this is the first time, and let the server judge the variant's settings."""
        loaded = self.load(variant, data_set)
        self.installation_of(variant).check_settings(self.workspace.account, loaded, variant.settings)

    def shared_memory_bytes(self, variant: Variant, data_set: DataSet) -> int:
        """Return the shared memory that a variant's server takes; 0 where it cannot be known beforehand."""
        loaded = self.load(variant, data_set)
        size = self.installation_of(variant).shared_memory_bytes(
            self.workspace.account, loaded, variant.settings
        )
        return size or 0

    def load(self, variant: Variant, data_set: DataSet) -> Path:
        """Return the stopped, loaded data directory that copies for this variant are made of."""
        return self.data_sets.ensure(data_set, self.installation_of(variant))

    def restore(self, variants: Sequence[Variant], seats: Sequence[int], data_set: DataSet) -> None:
        """Put a fresh copy of the data set on the seat of every variant."""
        places = zip(variants, seats, strict=True)
        self.data_sets.copy(
            [(self.load(v, data_set), self._seat_directory(v, seat, data_set)) for v, seat in places]
        )

    def has_seats(self, variants: Sequence[Variant], seats: Sequence[int], data_set: DataSet) -> bool:
        """Whether the seat of every variant holds a copy already."""
        places = zip(variants, seats, strict=True)
        return all((self._seat_directory(v, seat, data_set) / "PG_VERSION").is_file() for v, seat in places)

    @contextmanager
    def arms(
        self, variants: Sequence[Variant], seats: Sequence[int], data_set: DataSet
    ) -> Iterator[list[Arm]]:
        """Start every variant's server on its seat, in seat order; stop them all at the end."""
        started: dict[int, Arm] = {}
        with ExitStack() as stack:
            for index in sorted(range(len(variants)), key=lambda arm: seats[arm]):
                instance = self._instance(variants[index], seats[index], data_set)
                arm = Arm(variants[index], instance)
                stack.callback(arm.close)
                instance.start()
                arm.prewarm()
                started[index] = arm
            yield [started[index] for index in range(len(variants))]

    def _instance(self, variant: Variant, seat: int, data_set: DataSet) -> Instance:
        return Instance(
            self.installation_of(variant),
            self.workspace.account,
            self._seat_directory(variant, seat, data_set),
            self.sockets,
            _FIRST_PORT + seat,
            variant.settings,
            cpus=self.loads.split.server,
        )

    def _seat_directory(self, variant: Variant, seat: int, data_set: DataSet) -> Path:
        return self.loads.scratch / f"pg{self.installation_of(variant).version}-{data_set.key}-seat{seat}"
