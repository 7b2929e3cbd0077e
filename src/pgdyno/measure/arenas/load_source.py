"""The interface through which a command provides load hosts to the measuring code."""

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
    """An arena and a study with their load placed; ``hosts`` are names, empty for this machine."""

    arena: ScratchArena
    study: Study
    hosts: tuple[str, ...] = ()
    after_loss: AfterLoss = end_without_host


class LoadSource(Protocol):
    """The load hosts of a cell."""

    @property
    def cell(self) -> CellHosts:
        """The cell: its file and its hosts."""
        ...

    @property
    def allows_fewer(self) -> bool:
        """Whether measuring continues without a lost host."""
        ...

    def require_issuable(self, workloads: Collection[Workload], design: Design) -> None:
        """Raise UsageError for a workload that load hosts cannot issue, or with fewer clients than hosts."""
        ...

    def placed(
        self, arena: ScratchArena, study: Study, workloads: Mapping[str, Workload], progress: Progress
    ) -> Placed:
        """Return arena and study with load from these hosts. Raises: UsageError; RemoteHostError."""
        ...
