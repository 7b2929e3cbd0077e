"""How many rounds, of how many blocks: the cheapest replication for a wanted precision.

    symbol    meaning                                                        unit
    σ_A, σ_E  standard deviations between and within rounds                  1
    c_A, c_E  cost of starting a round, and of one block                     s
    n, R      blocks per round, rounds                                       1

The variance of the mean is (σ_A² + σ_E²/n)/R, its cost R (c_A + n c_E). For a given cost it is smallest at
n = √((c_A/c_E) (σ_E²/σ_A²)), whatever R is.

Source: Kalibera, Jones (2013), Rigorous Benchmarking in Reasonable Time, ISMM '13, 63-74; the same (2020),
Quantifying Performance Changes with Effect Size Confidence Intervals, arXiv:2007.10899.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pgdyno.model.verdict import VarianceComponents
from pgdyno.stats.inference import MINIMUM_ROUNDS_FOR_VERDICT
from pgdyno.stats.power import minimum_detectable_effect

MAXIMUM_BLOCKS_PER_ROUND = 16  # arbitrary: then σ_E²/n hardly matters beside any instance bias
MAXIMUM_ROUNDS = 1000  # arbitrary: nobody waits for more


@dataclass(frozen=True)
class ReplicationCost:
    """What a round costs beside its blocks (restart, restore, warm-up), and what a block costs."""

    round_s: float
    block_s: float

    def total_s(self, rounds: int, blocks_per_round: int) -> float:
        """Return the duration of an experiment."""
        return rounds * (self.round_s + blocks_per_round * self.block_s)


@dataclass(frozen=True)
class ReplicationPlan:
    """A plan with its duration and the effect it would find. ``mde`` is relative: 0.01 = 1 %.

    ``is_sufficient``: the plan reaches the wanted effect, if one was given, with enough rounds for a verdict.
    """

    rounds: int
    blocks_per_round: int
    duration_s: float
    mde: float
    is_sufficient: bool


def optimal_blocks_per_round(components: VarianceComponents, cost: ReplicationCost) -> int:
    """Return Kalibera and Jones' n, rounded up; at most ``MAXIMUM_BLOCKS_PER_ROUND``."""
    if components.within_rounds == 0:
        return 1
    if components.between_rounds == 0:
        return MAXIMUM_BLOCKS_PER_ROUND
    noise = components.within_rounds / components.between_rounds
    optimum = math.ceil(math.sqrt(cost.round_s / cost.block_s) * noise)
    return min(max(1, optimum), MAXIMUM_BLOCKS_PER_ROUND)


def plan_replication(
    components: VarianceComponents,
    cost: ReplicationCost,
    *,
    wanted_mde: float | None = None,
    budget_s: float | None = None,
    level: float = 0.95,
    power: float = 0.80,
) -> ReplicationPlan:
    """Return the shortest plan that finds ``wanted_mde`` within ``budget_s``; either may be missing.

    Without ``wanted_mde`` the budget is used up. Where the budget does not suffice, the best plan within it
    is returned, with fewer blocks per round before fewer rounds than a verdict needs; never under 2 rounds.
    Raises: ValueError if neither is given.
    """
    if wanted_mde is None and budget_s is None:
        raise ValueError("a plan needs a wanted effect or a budget")
    blocks = optimal_blocks_per_round(components, cost)
    affordable = MAXIMUM_ROUNDS
    if budget_s is not None:
        while blocks > 1 and cost.total_s(MINIMUM_ROUNDS_FOR_VERDICT, blocks) > budget_s:
            blocks -= 1
        affordable = min(MAXIMUM_ROUNDS, max(2, int(budget_s / cost.total_s(1, blocks))))

    def mde(rounds: int) -> float:
        return minimum_detectable_effect(components, rounds, blocks, level=level, power=power)

    rounds = affordable
    if wanted_mde is not None:
        candidates = range(min(MINIMUM_ROUNDS_FOR_VERDICT, affordable), affordable)
        rounds = next((count for count in candidates if mde(count) <= wanted_mde), affordable)
    reached = mde(rounds)
    is_precise = wanted_mde is None or reached <= wanted_mde
    return ReplicationPlan(
        rounds=rounds,
        blocks_per_round=blocks,
        duration_s=cost.total_s(rounds, blocks),
        mde=reached,
        is_sufficient=is_precise and rounds >= MINIMUM_ROUNDS_FOR_VERDICT,
    )
