"""Loads that a load host of a cell issues over the network. Data sets are loaded from here, by the socket."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.app.arenas.arm import Arm
from pgdyno.app.arenas.load import Loads
from pgdyno.app.cells.reach import ReachedLoadHost
from pgdyno.generators._contract import LoadRequest
from pgdyno.generators.driver import ArmTarget
from pgdyno.generators.driver_process import Distance, DriverProcess
from pgdyno.model.experiments.workload import Workload
from pgdyno.remote.load_driver import driver_sending
from pgdyno.server.connection.network_entrance import NetworkEntrance

_SPARE_S = 900.0
"""Beyond what a load takes: connecting may take ten minutes, and logs have to come here.

When the link is cut for good, this is how much longer than needed the load host keeps an idle driver.
"""


@dataclass(frozen=True)
class CellLoads(Loads):
    """Loads of the driver's turns from a load host. It is sent there with each, and logs come back."""

    load_host: ReachedLoadHost
    entrance: NetworkEntrance

    @classmethod
    def of(cls, loads: Loads, load_host: ReachedLoadHost, entrance: NetworkEntrance) -> CellLoads:
        """Return the same loads from a load host, so that servers have all CPUs here."""
        cpus = tuple(sorted({*loads.split.server, *loads.split.client}))
        split = replace(
            loads.split, server=cpus, client=(), is_isolated=True, load_host_cpus=len(load_host.cpus)
        )
        plain = (loads.workspace, loads.find_generator, loads.find_driver, loads.scratch, split)
        return cls(*plain, load_host, entrance)

    def _arm_target(self, arm: Arm, workload: Workload, prefix: Path, number: int) -> ArmTarget:
        local = super()._arm_target(arm, workload, prefix, number)
        return ArmTarget(local.name, replace(local.target, host=self.entrance.address), Path(str(number)))

    def _turns_driver(
        self, arms: Sequence[Arm], label: str, prefixes: Sequence[Path], request: LoadRequest
    ) -> DriverProcess:
        here = self._driver(arms, label)
        program, *arguments = here.argv
        there = self.load_host
        sending = driver_sending(
            there.host,
            there.ssh_config,
            Path(program),
            arguments,
            {"PGPASSWORD": self.entrance.password},
            request.duration_s + _SPARE_S,
        )
        distance = Distance(there.host.name, sending.first, sending.greeting, prefixes)
        return DriverProcess(sending.argv, list, sending.environment, here.output_file, distance)

    def _pinned(self) -> tuple[int, ...]:
        """Return the CPUs of the load host that hosts.toml names; the driver's threads are pinned there."""
        return self.load_host.host.cpus
