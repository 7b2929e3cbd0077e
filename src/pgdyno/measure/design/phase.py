"""The part of the checkpoint cycle that write workloads' figures cover. Pure.

A round begins right after a checkpoint, so blocks of seconds cover the time with most full-page images; the
checkpoint at the round's end is charged. Less frequent checkpoints save full-page images and writes, but only
blocks over a whole cycle show that. Such a block lasts twice the longest ``checkpoint_timeout`` of all arms:
the next checkpoint begins within one timeout, and is spread over less than another.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.experiment import Design, Experiment, Phase
from pgdyno.model.experiments.workload import ResetPolicy, Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.guc import normalise

_TIMEOUT = "checkpoint_timeout"
_USUAL_S = 300.0  # PostgreSQL's default
_CHARGED = (
    "write workloads: every round starts right after a checkpoint; the CPU time and the bytes of the "
    "checkpoint at its end are charged to the arm that dirtied the pages."
)


def with_phase(design: Design, variants: Sequence[Variant]) -> Design:
    """Return the design with blocks for its phase: for a whole cycle, one long block per round."""
    if design.phase is not Phase.CYCLE:
        return design
    timeouts_s = [float(normalise(one.settings.get(_TIMEOUT, f"{_USUAL_S:.0f}"), "s")) for one in variants]
    return replace(design, cycle_s=2 * max(timeouts_s), blocks_per_round=1)


def phase_note(design: Design) -> str:
    """Return a note on the part of the checkpoint cycle that write workloads' figures cover."""
    if design.cycle_s is None:
        return (
            f"{_CHARGED} Blocks are shorter than a checkpoint cycle, so savings by less frequent checkpoints "
            "are not credited."
        )
    return (
        f"{_CHARGED} Their blocks last {design.cycle_s / 60:g} min, twice the longest {_TIMEOUT}: each spans "
        "a whole checkpoint of every arm, so less frequent checkpoints are credited."
    )


def phase_of(experiment: Experiment, workload: str) -> Phase | None:
    """Return the phase of a workload's figures; None for read-only workloads and for steps."""
    is_writing = experiment.reset_policies.get(workload) is ResetPolicy.RESTORE
    return experiment.design.phase if is_writing and workload not in experiment.operations else None


def require_writing(workloads: Collection[Workload]) -> None:
    """Raise UsageError for the checkpoint-cycle phase without any write workload."""
    if workloads and all(workload.is_read_only for workload in workloads):
        raise UsageError(
            "a whole checkpoint cycle needs a workload that writes, and none of these does",
            detail=", ".join(workload.name for workload in workloads),
            hint="leave out --phase cycle (or phase in the file), or add a workload such as pgbench-tpcb",
        )
