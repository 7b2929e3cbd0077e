"""Load hosts in place of this machine: a command hands them to the measuring code."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from pgdyno.base.ports import Progress
from pgdyno.measure.arenas.arena import AfterLoss, end_without_host
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.model.cells.cell import CellHosts
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload


@dataclass(frozen=True)
class Placed:
    """An arena and a study with the place of their load; ``hosts`` are names, none if it is this machine."""

    arena: ScratchArena
    study: Study
    hosts: tuple[str, ...] = ()
    after_loss: AfterLoss = end_without_host


class LoadSource(Protocol):
    """The load hosts of a cell. ``allows_fewer``: the others go on without one that is lost."""

    @property
    def cell(self) -> CellHosts:
        """The hosts, by the file that names them."""
        ...

    @property
    def allows_fewer(self) -> bool:
        """Whether the others go on without a host that is lost."""
        ...

    def require_issuable(self, workloads: Collection[Workload], design: Design) -> None:
        """Raise UsageError for a workload that load hosts cannot issue, or of fewer clients than they are."""
        ...

    def placed(
        self, arena: ScratchArena, study: Study, workloads: Mapping[str, Workload], progress: Progress
    ) -> Placed:
        """Return arena and study with the load from there. Raises: UsageError; RemoteHostError."""
        ...
