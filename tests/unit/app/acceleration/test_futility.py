"""Measuring stops at half only if neither the plan nor what would be applied of it is worth going on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic_layers import experiment as with_layers

from pgdyno.app.acceleration.accelerate import _is_futile
from pgdyno.model.experiments.experiment import Block, Experiment
from pgdyno.model.plans.terms import PLAN, Terms
from pgdyno.model.variants.variant import Variant

APPLIED = "without-plan_cache_mode"
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
    arms = [replace(by_name[source], variant=name) for name, source in wanted.items()]
    return replace(block, arms=(by_name["default"], *arms))


@pytest.mark.parametrize(
    ("plan", "applied", "is_futile"),
    [
        (SLOW, SLOW, True),
        (SLOW, None, True),
        (SLOW, FAST, False),
        (FAST, SLOW, False),
        (FAST, None, False),
    ],
)
def test_both_have_to_be(plan: str, applied: str | None, *, is_futile: bool) -> None:
    assert _is_futile(experiment(plan, applied), Terms()) is is_futile
