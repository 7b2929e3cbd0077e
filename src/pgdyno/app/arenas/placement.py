"""Places that turns of a load are issued from; here is the usual one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pgdyno.experiments.design.isolation import CpuSplit
from pgdyno.generators.driver import ArmTarget
from pgdyno.generators.driver_process import DriverProcess


class Placement(Protocol):
    """A place. It is told how the driver would be started here, beside the servers."""

    def arm_target(self, here: ArmTarget, number: int) -> ArmTarget:
        """Return where the driver connects to an arm from there, and where it logs."""
        ...

    def driver(self, here: DriverProcess, prefixes: Sequence[Path], duration_s: float) -> DriverProcess:
        """Return the driver for turns, whose logs are to be here at the prefixes."""
        ...

    def pinned(self, split: CpuSplit) -> tuple[int, ...]:
        """Return the CPUs that the driver's threads are pinned to, if they have some of their own."""
        ...

    def require_here(self) -> None:
        """Raise UsageError unless it is here: loads without turns are issued from nowhere else."""
        ...


@dataclass(frozen=True)
class Here:
    """The place beside the servers."""

    def arm_target(self, here: ArmTarget, number: int) -> ArmTarget:  # noqa: ARG002 — of the protocol
        """Return it as it is."""
        return here

    def driver(
        self,
        here: DriverProcess,
        prefixes: Sequence[Path],  # noqa: ARG002 — of the protocol
        duration_s: float,  # noqa: ARG002 — of the protocol
    ) -> DriverProcess:
        """Return it as it is."""
        return here

    def pinned(self, split: CpuSplit) -> tuple[int, ...]:
        """Return the load's CPUs, if they are its own."""
        return split.client if split.is_isolated else ()

    def require_here(self) -> None:
        """Do nothing."""
