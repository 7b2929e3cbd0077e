"""A machine whose hypervisor takes time throughout, and what counts there.

The limit on stolen time keeps a few disturbed blocks from widening every interval. It serves precision alone:
which trials a neighbour disturbs is chance, because their order is. Where it would leave too little to
judge, none is left out for it, and the intervals carry the noise. See decision 11.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping
from dataclasses import replace

from pgdyno.experiments.blocks import trials_void, void_reason
from pgdyno.experiments.stopping import is_too_noisy
from pgdyno.model.experiment import Block, Experiment, VoidThresholds

_STOLEN = "steal_share"
_ALL = 1.0


def lift_limit(experiment: Experiment) -> Experiment:
    """Return the experiment without its limit on stolen time if that makes it too noisy, else as it is.

    What does not count for another reason still does not. The design says that there is no limit, a note why.
    """
    limits = experiment.design.thresholds
    blocks = tuple(_judged_again(block, limits) for block in experiment.blocks)
    if not is_too_noisy(experiment.blocks, experiment.design) or blocks == experiment.blocks:
        return experiment
    stolen = [audit[_STOLEN] for block in blocks for audit in _audits(block) if _STOLEN in audit]
    disturbed = sum(share > limits.steal_share for share in stolen)
    note = (
        f"the hypervisor took more than {limits.steal_share:.0%} of the CPU time from {disturbed} of "
        f"{len(stolen)} trials (half of them lost more than {statistics.median(stolen):.0%}, one "
        f"{max(stolen):.0%}): none is left out for that, so the intervals are wider; repeat it when "
        "less else runs on the physical machine"
    )
    design = replace(experiment.design, thresholds=_lifted(limits))
    return replace(experiment, blocks=blocks, design=design, notes=(*experiment.notes, note))


def _audits(block: Block) -> Iterator[Mapping[str, float]]:
    """Return what is known of each trial: an arm's own, or the one that all arms had together."""
    own = [arm.audit for arm in block.arms if arm.audit]
    yield from own or [block.audit]


def _lifted(limits: VoidThresholds) -> VoidThresholds:
    return replace(limits, steal_share=_ALL)


def _judged_again(block: Block, limits: VoidThresholds) -> Block:
    if not any(arm.audit for arm in block.arms):
        return replace(block, void=_without_limit(block.void, block.audit, limits))
    arms = tuple(replace(arm, void=_without_limit(arm.void, arm.audit, limits)) for arm in block.arms)
    return replace(block, arms=arms, void=trials_void(arms))


def _without_limit(void: str | None, audit: Mapping[str, float], limits: VoidThresholds) -> str | None:
    """Return the reason that is left; one that no rule of this audit gave is kept."""
    return void_reason(audit, _lifted(limits)) if void == void_reason(audit, limits) else void
