"""The arena: where scratch servers are put side by side on byte-identical data and set to work."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.app.arm import Arm
from pgdyno.app.datasets import DATABASE, DataSets
from pgdyno.experiments.isolation import CpuSplit
from pgdyno.generators._contract import LoadRequest, Target
from pgdyno.generators.process import LoadProcess, wait_until_connected
from pgdyno.model.experiment import Design
from pgdyno.model.variant import Variant
from pgdyno.model.workload import DataSet, Workload
from pgdyno.server.installation import Installation
from pgdyno.server.instance import SUPERUSER, Instance
from pgdyno.server.workspace import Workspace

_FIRST_PORT = 5433  # any: the socket directory is private; one port per seat
_CONNECT_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Arena:
    """Everything that rounds share: installations, data sets, a scratch directory, the CPU split.

    A *seat* is a data directory with its port. Arms change seats from round to round, so that the placement
    of a copy on disk is not taken for an effect. ``installation`` runs the variants that name no server of
    their own, ``servers`` the others; ``data_sets`` are loaded by each installation itself.
    """

    workspace: Workspace
    installation: Installation
    servers: Mapping[str, Installation]
    data_sets: DataSets
    scratch: Path
    sockets: Path
    split: CpuSplit

    def installation_of(self, variant: Variant) -> Installation:
        """Return what a variant's server runs."""
        return self.installation if variant.server is None else self.servers[variant.server]

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
                arm = Arm(variants[index], self._instance(variants[index], seats[index], data_set))
                stack.callback(arm.close)
                arm.instance.start()
                arm.prewarm()
                started[index] = arm
            yield [started[index] for index in range(len(variants))]

    def start_load(
        self, arm: Arm, workload: Workload, design: Design, *, duration_s: float, label: str
    ) -> LoadProcess:
        """Set the generator on an arm, wait for its first transaction, and return it running."""
        generator = self.data_sets.find_generator(workload.generator)
        prefix = self.log_prefix(label)
        self.forget(label)
        request = LoadRequest(
            clients=design.clients,
            threads=len(self.split.client),
            seed=design.seed,
            duration_s=int(duration_s) + 1,
            log_prefix=prefix,
        )
        target = Target(str(self.sockets), arm.instance.port, SUPERUSER, DATABASE)
        load = arm.load = LoadProcess(
            generator.run(target, self._with_readable_scripts(workload), request),
            lambda argv: self.workspace.account.command(argv, cpus=self.split.client),
            prefix,
            self.scratch / f"generator-{label}.out",
        )
        load.start()
        wait_until_connected(load, timeout_s=_CONNECT_TIMEOUT_S)
        return load

    def _with_readable_scripts(self, workload: Workload) -> Workload:
        """Copy the user's scripts to where the generator's user can read them."""
        copies = []
        for position, script in enumerate(workload.scripts):
            if script.file is None:
                copies.append(script)
                continue
            copy = self.scratch / f"script-{position}-{script.name}"
            copy.write_bytes(Path(script.file).read_bytes())
            copy.chmod(0o644)
            copies.append(replace(script, file=str(copy)))
        return replace(workload, scripts=tuple(copies))

    def log_prefix(self, label: str) -> Path:
        """Return where the generator of this label logs its transactions: ``PREFIX.*``."""
        return self.workspace.transactions() / label

    def forget(self, label: str) -> None:
        """Remove the logs of all labels that begin like this."""
        for old in self.workspace.transactions().glob(f"{label}.*"):
            old.unlink()

    def _instance(self, variant: Variant, seat: int, data_set: DataSet) -> Instance:
        return Instance(
            self.installation_of(variant),
            self.workspace.account,
            self._seat_directory(variant, seat, data_set),
            self.sockets,
            _FIRST_PORT + seat,
            variant.settings,
            cpus=self.split.server,
        )

    def _seat_directory(self, variant: Variant, seat: int, data_set: DataSet) -> Path:
        return self.scratch / f"pg{self.installation_of(variant).version}-{data_set.key}-seat{seat}"


def online_cpus() -> tuple[int, ...]:
    """Return the CPUs that this process may use."""
    return tuple(sorted(os.sched_getaffinity(0)))
