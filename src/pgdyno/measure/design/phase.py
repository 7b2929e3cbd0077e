"""The phase between checkpoints that writing workloads' figures cover. Pure.

A round begins right after a checkpoint, and blocks of seconds see the time in which most full-page images are
written; the checkpoint at the round's end is charged. Rarer checkpoints save full-page images and writes that
only a whole cycle shows: a block then lasts twice the longest ``checkpoint_timeout`` of all arms. The next
checkpoint begins after one of them at the latest, and is spread over less than another.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.experiment import Design, Experiment, Phase, ResetPolicy
from pgdyno.model.experiments.workload import Workload
from pgdyno.model.variants.variant import Variant
from pgdyno.postgres.guc import normalise

_TIMEOUT = "checkpoint_timeout"
_USUAL_S = 300.0  # PostgreSQL's default of it
_CHARGED = (
    "write workloads: every round starts right after a checkpoint; the CPU time and the bytes of the "
    "checkpoint at its end are charged to the arm that dirtied the pages."
)


def with_phase(design: Design, variants: Sequence[Variant]) -> Design:
    """Return the design with blocks of writing workloads as long as its phase takes; then one a round."""
    if design.phase is not Phase.CYCLE:
        return design
    timeouts_s = [float(normalise(one.settings.get(_TIMEOUT, f"{_USUAL_S:.0f}"), "s")) for one in variants]
    return replace(design, cycle_s=2 * max(timeouts_s), blocks_per_round=1)


def phase_note(design: Design) -> str:
    """Describe the phase between checkpoints that writing workloads' figures cover."""
    if design.cycle_s is None:
        return (
            f"{_CHARGED} Blocks are shorter than a checkpoint cycle, so that savings by rarer checkpoints "
            "are not credited."
        )
    return (
        f"{_CHARGED} Their blocks last {design.cycle_s / 60:g} min, twice the longest {_TIMEOUT}: each spans "
        "a checkpoint of every arm from its beginning to its end, so that rarer checkpoints are credited."
    )


def phase_of(experiment: Experiment, workload: str) -> Phase | None:
    """Return the phase that a workload's figures are of; None for one that reads only, and for steps."""
    is_writing = experiment.reset_policies.get(workload) is ResetPolicy.RESTORE
    return experiment.design.phase if is_writing and workload not in experiment.operations else None


def require_writing(workloads: Collection[Workload]) -> None:
    """Raise UsageError for a checkpoint cycle of workloads that bring about none."""
    if workloads and all(workload.is_read_only for workload in workloads):
        raise UsageError(
            "a whole checkpoint cycle concerns workloads that write, and none of these does",
            detail=", ".join(workload.name for workload in workloads),
            hint="leave out --phase cycle, or phase in the file; or add a workload, for example pgbench-tpcb",
        )
