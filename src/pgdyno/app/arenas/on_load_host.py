"""Turns of a load that a load host of a cell issues over the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.app.arenas.load import Loads
from pgdyno.app.cells.reach import ReachedLoadHost
from pgdyno.experiments.design.isolation import CpuSplit
from pgdyno.generators.driver import ArmTarget
from pgdyno.generators.driver_process import Distance, DriverProcess
from pgdyno.model.errors import UsageError
from pgdyno.remote.load_driver import driver_sending
from pgdyno.server.connection.network_entrance import NetworkEntrance

_SPARE_S = 900.0
"""Beyond what a load takes: connecting may take ten minutes, and logs have to come here.

When the link is cut for good, the load host keeps an idle driver until then.
"""


@dataclass(frozen=True)
class OnLoadHost:
    """A load host. The driver is sent there with each load, and its logs come back."""

    load_host: ReachedLoadHost
    entrance: NetworkEntrance

    def arm_target(self, here: ArmTarget, number: int) -> ArmTarget:
        """Return the same server by the network; the arm's number is the name of its logs there."""
        return ArmTarget(here.name, replace(here.target, host=self.entrance.address), Path(str(number)))

    def driver(self, here: DriverProcess, prefixes: Sequence[Path], duration_s: float) -> DriverProcess:
        """Return the same driver, sent there."""
        program, *arguments = here.argv
        there = self.load_host
        sending = driver_sending(
            there.host,
            there.ssh_config,
            Path(program),
            arguments,
            {"PGPASSWORD": self.entrance.password},
            2 * duration_s + _SPARE_S,  # its turns have gaps of a round trip, and ends that may be slow
        )
        distance = Distance(there.host.name, sending.first, sending.greeting, prefixes)
        return DriverProcess(sending.argv, list, sending.environment, here.output_file, distance)

    def pinned(self, split: CpuSplit) -> tuple[int, ...]:  # noqa: ARG002 — of the protocol
        """Return the CPUs of the load host that hosts.toml names."""
        return self.load_host.host.cpus

    def require_here(self) -> None:
        """Raise UsageError."""
        raise UsageError(f"this load cannot be issued by {self.load_host.host.name} yet")


def placed_on(loads: Loads, load_host: ReachedLoadHost, entrance: NetworkEntrance, threads: int) -> Loads:
    """Return loads whose turns come from a load host, so that servers have all CPUs here.

    Data sets are loaded from here, by the socket.
    """
    cpus = tuple(sorted({*loads.split.server, *loads.split.client}))
    split = replace(loads.split, server=cpus, client=(), is_isolated=True, load_host_threads=threads)
    return replace(loads, split=split, placement=OnLoadHost(load_host, entrance))
