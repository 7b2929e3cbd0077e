"""How an experiment should spend its time on rounds and blocks, from what an earlier one has shown. Pure."""

from __future__ import annotations

from pgdyno.model.experiment import Experiment
from pgdyno.stats.power import minimum_detectable_effect
from pgdyno.stats.replication import ReplicationCost, plan_replication

_PRIMARY = "throughput_tps"


def blocks_per_round(earlier: Experiment, variant: str, budget_s: float) -> int:
    """Return the blocks per round that make ``variant``'s throughput most precise within ``budget_s``.

    Rounds average out what differs between started servers, blocks what happens while they run. The
    workload that gains most from blocks decides; every round measures all of them. Where the earlier
    experiment cannot tell the two apart (one block per round), its number is kept.
    """
    components = [
        verdict.components
        for verdict in earlier.verdicts
        if verdict.metric == _PRIMARY and verdict.variant == variant and verdict.components is not None
    ]
    if earlier.design.blocks_per_round == 1 or not components:
        return earlier.design.blocks_per_round
    cost, share_s = replication_cost(earlier), budget_s / len(earlier.workloads)
    return max(plan_replication(each, cost, budget_s=share_s).blocks_per_round for each in components)


def expectations(earlier: Experiment, variant: str, blocks: int, budget_s: float) -> tuple[str, ...]:
    """Say which change of throughput an experiment of that length can be expected to find, per workload.

    One that was put together from parts has no variance of its own to tell it by.
    """
    if earlier.parts:
        return ()
    cost = replication_cost(earlier)
    rounds = max(2, int(budget_s / len(earlier.workloads) / cost.total_s(1, blocks)))
    return tuple(
        f"expected beforehand, from {earlier.id}: on {verdict.workload} a change of throughput of "
        f"{minimum_detectable_effect(verdict.components, rounds, blocks):.1%} is found with 80 % power"
        for verdict in earlier.verdicts
        if verdict.metric == _PRIMARY and verdict.variant == variant and verdict.components is not None
    )


def replication_cost(earlier: Experiment) -> ReplicationCost:
    """Return what a round of one workload has cost beside its blocks, by the time between rounds."""
    design = earlier.design
    starts = {block.round: block.started_ns for block in reversed(earlier.blocks)}
    first, last = min(starts), max(starts)
    round_s = (starts[last] - starts[first]) / 1e9 / max(1, last - first) / len(earlier.workloads)
    overhead_s = round_s - design.blocks_per_round * design.block_s
    return ReplicationCost(round_s=max(design.warmup_s, overhead_s), block_s=design.block_s)
