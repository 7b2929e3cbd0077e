"""What the plan brings without what suits only some applications."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.synthetic_layers import experiment as with_layers

from pgdyno.accelerate.view import decision_box
from pgdyno.accelerate.view import without_per_application as found_in
from pgdyno.model.experiments.experiment import Block, Experiment
from pgdyno.model.plans.plan import left_out_per_application, without_per_application
from pgdyno.model.variants.variant import Variant

NAME = "without-plan_cache_mode"


def experiment() -> Experiment:
    """Return an experiment with the arm, which is as fast as the plan without its application layer.

    That is 1.5 / 1.2 = 1.25 and 1.3 / 1.4 = 0.93 times the baseline.
    """
    base = with_layers()
    blocks = tuple(_with_arm(block) for block in base.blocks)
    return replace(base, variants=(*base.variants, Variant(NAME)), blocks=blocks)


def _with_arm(block: Block) -> Block:
    arm = next(one for one in block.arms if one.variant == "without-application")
    return replace(block, arms=(*block.arms, replace(arm, variant=NAME)))


def test_the_name_says_what_is_left_out_and_is_no_layers() -> None:
    assert without_per_application(["plan_cache_mode"]) == NAME
    assert left_out_per_application(NAME) == ("plan_cache_mode",)
    assert left_out_per_application("without-application") == ()
    assert left_out_per_application("plan_cache_mode") == ()


def test_the_rest_of_the_plan_is_decided_by_the_same_terms() -> None:
    found = found_in(experiment())
    assert found is not None
    assert found.sentence.startswith(
        "Without plan_cache_mode, which pgdyno never applies, the plan does not pay, a workload is slower: "
        "throughput +25."
    )


def test_what_is_applied_leads_and_the_whole_plan_follows() -> None:
    found, box = found_in(experiment()), decision_box(experiment())
    assert found is not None
    assert box is not None
    assert box.state == "slower somewhere"
    assert box.sentence == found.sentence
    assert box.reasons == found.decision.reasons
    assert box.whole.startswith(
        "With plan_cache_mode (only statements prepared by name gain from it) the plan "
    )


def test_nothing_is_said_where_it_was_not_measured() -> None:
    assert found_in(with_layers()) is None
    assert found_in(replace(experiment(), terms=None)) is None
    box = decision_box(with_layers())
    assert box is not None
    assert box.whole == ""
