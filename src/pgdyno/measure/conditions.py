"""The conditions under which a study is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.measure.decisions.stopping import Look
from pgdyno.model.cells.cell import CellHosts
from pgdyno.model.experiments.experiment import Design
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
    cell: CellHosts | None = None  # whose load hosts issue the load; else this machine does
    allows_fewer: bool = False  # whether to go on without a load host that is lost
    as_booted: str = ""  # why idle CPUs are left as they are; else they are kept awake
