"""Measuring stops early only if both the plan and what would be applied of it are settled."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic_layers import experiment as with_layers

from pgdyno.accelerate.accelerate import _is_settled
from pgdyno.measure.decisions.plan_decision import PlanState, decide_plan
from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.model.plans.plan import PLAN, Terms
from pgdyno.model.variants.variant import Variant

APPLIED = "without-plan_cache_mode"
OPEN = "open"  # as fast as the first on average, twice or half as fast in each round
FAST, SLOW = "plan", "without-application"  # of the made-up experiment; the second loses 7 % on one workload


def experiment(plan: str, applied: str | None) -> Experiment:
    """Return it with a plan, and what would be applied of it, as fast as those variants."""
    wanted = {PLAN: plan} if applied is None else {PLAN: plan, APPLIED: applied}
    base = with_layers()
    return replace(
        base,
        variants=(Variant("default"), *map(Variant, wanted)),
        blocks=tuple(_with_arms(block, wanted) for block in base.blocks),
    )


def _with_arms(block: Block, wanted: dict[str, str]) -> Block:
    by_name = {arm.variant: arm for arm in block.arms}
    times = 2.0 if block.round % 2 else 0.5
    fast = by_name[FAST]
    by_name[OPEN] = replace(fast, values={name: value * times for name, value in fast.values.items()})
    arms = [replace(_uneven(by_name[source], block.round), variant=name) for name, source in wanted.items()]
    return replace(block, arms=(by_name["default"], *arms))


@pytest.mark.parametrize(
    ("plan", "applied", "is_settled"),
    [
        (SLOW, SLOW, True),
        (SLOW, None, True),
        (SLOW, FAST, True),
        (OPEN, SLOW, True),  # the whole plan pays only if what is applied of it does
        (FAST, None, True),  # it pays
        (FAST, FAST, True),
        (FAST, SLOW, True),
        (OPEN, FAST, False),
        (FAST, OPEN, False),
        (OPEN, None, False),
    ],
)
def test_both_have_to_be(plan: str, applied: str | None, *, is_settled: bool) -> None:
    assert _is_settled(experiment(plan, applied), Terms(looks=2)) is is_settled


def test_four_rounds_settle_nothing() -> None:
    found = experiment(FAST, SLOW)
    early = replace(found, blocks=tuple(block for block in found.blocks if block.round < 4))
    assert not _is_settled(early, Terms(looks=2))


def _uneven(arm: ArmBlock, round_: int) -> ArmBlock:
    """Return the arm with a tail of 2 % of noise: where all rounds are equal there is no interval."""
    tail_ms = arm.values["latency_ms_p99"] * (1.02 if round_ % 3 else 0.98)
    return replace(arm, values={**arm.values, "latency_ms_p99": tail_ms})


def test_the_whole_plan_pays_only_if_what_is_applied_of_it_does() -> None:
    terms = Terms(looks=2)
    both, alone = experiment(FAST, FAST), experiment(FAST, SLOW)
    assert decide_plan(both, PLAN, terms).pays
    found = decide_plan(alone, PLAN, terms)
    assert found.state is PlanState.UNDECIDED
    assert found.sentence.startswith(
        "Undecided whether the plan pays: the plan without plan_cache_mode is not shown to pay."
    )
    assert decide_plan(alone, PLAN, Terms()).pays  # of experiments of before, in which each was for itself
