"""The conditions under which a study is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.base.ports import Progress
from pgdyno.measure.arenas.load_source import LoadSource, Placed
from pgdyno.measure.arenas.scratch_arena import ScratchArena
from pgdyno.measure.decisions.stopping import Look
from pgdyno.measure.passes import Passes
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.study import Study
from pgdyno.model.experiments.workload import Workload
from pgdyno.postgres.process.installation import Installation


@dataclass(frozen=True)
class Conditions:
    """Under which conditions a study is measured."""

    installation: Installation | None  # None: every variant names its own server
    workloads: Mapping[str, Workload]
    design: Design
    budget_s: float | None = None
    resume: str | None = None
    is_resumable: bool = True  # whether the command that measures takes up what was interrupted
    accepts_builds: bool = False  # as they are: their differences do not make a comparison confounded
    accepts_patches: bool = False  # to PostgreSQL's source, in the builds that a plan may choose
    allowed_files: frozenset[str] = frozenset()  # of the kernel, besides those of levers
    look: Look | None = None  # asked once, after the fewest rounds that a verdict takes: whether to stop
    load_from: LoadSource | None = None  # the hosts that issue the load; else this machine does
    passes: Passes | None = None  # how the steps of a benchmark are measured
    as_booted: str = ""  # why idle CPUs are left as they are; else they are kept awake

    def placed(self, arena: ScratchArena, study: Study, progress: Progress) -> Placed:
        """Return arena and study as they are, or with load from other hosts. Raises: as ``LoadSource``."""
        if self.load_from is None:
            return Placed(arena, study)
        return self.load_from.placed(arena, study, self.workloads, progress)
