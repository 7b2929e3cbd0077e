from __future__ import annotations

import pytest

from pgdyno.model.verdict import VarianceComponents
from pgdyno.stats.power import minimum_detectable_effect
from pgdyno.stats.replication import ReplicationCost, optimal_blocks_per_round, plan_replication

EVEN = VarianceComponents(0.012, 0.012)
COST = ReplicationCost(round_s=20.0, block_s=5.0)


@pytest.mark.parametrize(
    ("components", "cost", "blocks"),
    [
        (EVEN, COST, 2),  # √(20/5 · 1) = 2
        (VarianceComponents(0.010, 0.030), COST, 6),  # √(20/5 · 9) = 6
        (VarianceComponents(0.030, 0.010), COST, 1),  # √(20/5 · 1/9) = 0.67
        (VarianceComponents(0.010, 0.015), COST, 3),
        (VarianceComponents(0.010, 0.016), COST, 4),  # 3.2, rounded up
        (VarianceComponents(0.010, 0.0), COST, 1),
        (VarianceComponents(0.0, 0.010), COST, 16),
    ],
)
def test_blocks_per_round_follow_kalibera_and_jones(
    components: VarianceComponents, cost: ReplicationCost, blocks: int
) -> None:
    assert optimal_blocks_per_round(components, cost) == blocks


def test_a_plan_has_the_fewest_rounds_that_find_the_wanted_effect() -> None:
    plan = plan_replication(EVEN, COST, wanted_mde=0.01)
    assert plan.blocks_per_round == 2
    assert plan.mde <= 0.01 < minimum_detectable_effect(EVEN, plan.rounds - 1, 2)
    assert plan.duration_s == plan.rounds * 30.0
    assert plan.is_sufficient


def test_without_a_wanted_effect_the_budget_is_used_up() -> None:
    plan = plan_replication(EVEN, COST, budget_s=319.0)
    assert (plan.rounds, plan.duration_s, plan.is_sufficient) == (10, 300.0, True)


def test_a_budget_that_is_too_small_for_the_wanted_effect_is_said() -> None:
    plan = plan_replication(EVEN, COST, wanted_mde=0.001, budget_s=300.0)
    assert plan.rounds == 10
    assert not plan.is_sufficient


def test_a_small_budget_goes_into_rounds_before_blocks() -> None:
    noisy = VarianceComponents(0.010, 0.030)  # six blocks per round would be best: 50 s each
    plan = plan_replication(noisy, COST, budget_s=150.0)
    assert (plan.rounds, plan.blocks_per_round) == (5, 2)


def test_a_budget_below_five_rounds_is_not_sufficient_for_a_verdict() -> None:
    plan = plan_replication(EVEN, COST, budget_s=60.0)
    assert (plan.rounds, plan.blocks_per_round, plan.is_sufficient) == (2, 1, False)


def test_a_plan_for_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="a plan needs a wanted effect or a budget"):
        plan_replication(EVEN, COST)
