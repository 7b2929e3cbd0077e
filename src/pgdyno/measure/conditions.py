"""The conditions under which a study is measured, and the interface through which it gets load hosts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

from pgdyno.base.ports import Progress
from pgdyno.measure.arenas.arena import AfterLoss, Passes, end_without_host
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.measure.decisions.stopping import Look
from pgdyno.model.cells.cell import CellHosts
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload
from pgdyno.postgres.process.installation import Installation


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


@dataclass(frozen=True)
class Conditions:
    """The conditions under which a study is measured."""

    installation: Installation | None  # None: every variant names its server
    workloads: Mapping[str, Workload]
    design: Design
    budget_s: float | None = None
    resume: str | None = None
    is_resumable: bool = True  # whether the command can resume an interrupted experiment
    accepts_builds: bool = False  # compare builds despite differences that confound them
    accepts_unlike: bool = False  # measure captured workloads although their replay is unlike the original
    accepts_patches: bool = False  # to PostgreSQL's source, in builds that a plan may choose
    allowed_files: frozenset[str] = frozenset()  # kernel files, in addition to those of levers
    look: Look | None = None  # called once, after the fewest rounds for a verdict
    load_from: LoadSource | None = None  # hosts that issue the load; None: this machine
    passes: Passes | None = None  # measures the steps of a benchmark
    as_booted: str = ""  # reason not to keep idle CPUs awake; empty: keep them awake

    def placed(self, arena: ScratchArena, study: Study, progress: Progress) -> Placed:
        """Return arena and study, with load from other hosts if configured. Raises: as ``LoadSource``."""
        if self.load_from is None:
            return Placed(arena, study)
        return self.load_from.placed(arena, study, self.workloads, progress)
