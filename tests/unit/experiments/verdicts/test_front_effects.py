"""The front by its proof: effects in every aim, who is left, and why others are not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import pytest
from tests.golden.synthetic_front import RATIOS, WORKLOAD, experiment, tuning

from pgdyno.experiments.verdicts.contrasts import contrast_intervals, mean_contrast_intervals
from pgdyno.experiments.verdicts.front_effects import MemberEffects, proven_front
from pgdyno.model.experiments.experiment import DesignKind, Experiment
from pgdyno.model.tuning.aims import Aim
from pgdyno.model.tuning.tuning import Tuning


def members(of: Tuning | None = None, proof: Experiment | None = None) -> Mapping[str, MemberEffects]:
    found = proven_front(of or tuning(), proof or experiment())
    assert found is not None
    return {one.name: one for one in found.members}


def test_the_true_ratios_are_in_the_intervals() -> None:
    found = members()
    assert list(found) == ["member-1", "member-2", "member-3", "member-4", "plan"]
    for name, one in found.items():
        for aim, truth in zip((Aim.THROUGHPUT, Aim.WAL), RATIOS[name], strict=True):
            effect = one.effects[aim]
            assert effect.low * 0.999 < truth < effect.high * 1.001
            assert effect.high / effect.low < 1.03


def test_a_member_that_is_not_told_from_a_simpler_one_is_left_out() -> None:
    one = members()["member-3"]
    assert (one.like, one.worse_than, one.is_on_front) == ("member-2", None, False)


def test_a_difference_that_is_shown_to_be_small_does_not_count() -> None:
    proof = experiment()
    slower = {"throughput_tps": 0.99, "wal_bytes_per_transaction": 1.0}  # of what member-2 has
    blocks = tuple(
        replace(
            block,
            arms=tuple(
                replace(arm, values={**arm.values, **{k: arms["member-2"][k] * v for k, v in slower.items()}})
                if arm.variant == "member-1"
                else arm
                for arm in block.arms
            ),
        )
        for block in proof.blocks
        for arms in [{arm.variant: arm.values for arm in block.arms}]
    )
    noisy = tuple(
        replace(
            block,
            arms=tuple(
                replace(arm, values={k: v * (1 + 0.001 * (block.round % 3)) for k, v in arm.values.items()})
                if arm.variant == "member-1"
                else arm
                for arm in block.arms
            ),
        )
        for block in blocks
    )
    found = members(proof=replace(proof, blocks=noisy))
    assert (found["member-1"].worse_than, found["member-1"].like) == (None, None)
    assert found["member-2"].like == "member-1"  # as many changes, and the first of the two


def test_a_member_that_another_one_dominates_is_left_out() -> None:
    found = members()
    assert found["member-4"].worse_than == "member-2"
    assert found["plan"].worse_than == "member-1"
    front = proven_front(tuning(), experiment())
    assert front is not None
    assert [one.name for one in front.left] == ["member-1", "member-2"]


def test_what_is_like_the_default_is_left_out() -> None:
    proof = experiment()
    default_again = tuple(
        replace(
            block,
            arms=tuple(
                replace(arm, values=before.arms[0].values) if arm.variant == "member-4" else arm
                for arm in block.arms
            ),
        )
        for block, before in zip(proof.blocks, (*proof.blocks[1:], proof.blocks[0]), strict=True)
    )
    one = members(proof=replace(proof, blocks=default_again))["member-4"]
    assert (one.like, one.is_on_front) == ("default", False)


def with_memory(**logs: float) -> Tuning:
    """Return the search for memory as well, with what each trial needs: ln(trial / default)."""
    found = tuning()
    needs = {member.trial: logs.get(member.name.replace("-", "_"), 0.3) for member in found.members}
    trials = tuple(
        replace(
            trial,
            rounds=tuple(
                replace(one, by_aim={**one.by_aim, Aim.MEMORY: needs.get(trial.number, 0.3)})
                for one in trial.rounds
            ),
        )
        for trial in found.trials
    )
    return replace(found, aims=(*found.aims, Aim.MEMORY), trials=trials)


def test_memory_is_what_the_trials_have_recorded_and_has_no_width() -> None:
    effect = members(with_memory(member_1=math.log(1.5)))["member-1"].effects[Aim.MEMORY]
    assert (effect.low, effect.point, effect.high) == pytest.approx((1.5, 1.5, 1.5))


def test_what_needs_less_memory_stays_on_the_front() -> None:
    assert members(with_memory(member_4=0.25))["member-4"].is_on_front
    assert not members(with_memory(member_4=0.29))["member-4"].is_on_front  # 1 % less


def test_a_search_with_one_aim_or_few_rounds_has_no_front() -> None:
    assert proven_front(replace(tuning(), aims=(), members=()), experiment()) is None
    few = replace(experiment(), blocks=experiment().blocks[:1])
    assert proven_front(tuning(), few) is None


def test_the_mean_over_workloads_is_of_rounds_that_all_have() -> None:
    one_by_one = replace(experiment().design, kind=DesignKind.ALTERNATING)  # has no effects of seats
    proof = replace(experiment(), design=one_by_one)
    other = tuple(
        replace(
            block,
            workload="another",
            arms=tuple(
                replace(arm, values={"throughput_tps": 1.0 if arm.variant == "default" else 1.21})
                for arm in block.arms
            ),
        )
        for block in proof.blocks[:-1]
    )
    both = replace(proof, workloads=(WORKLOAD, "another"), blocks=(*proof.blocks, *other))
    weights = {"gain": {"member-1": 1.0, "default": -1.0}}
    alone = contrast_intervals(replace(proof, blocks=proof.blocks[:-1]), WORKLOAD, weights)["gain"]
    mean = mean_contrast_intervals(both, weights)["gain"]
    assert mean.point == pytest.approx(math.sqrt(alone.point * 1.21))
    one = mean_contrast_intervals(proof, weights)["gain"]
    assert one.point == pytest.approx(contrast_intervals(proof, WORKLOAD, weights)["gain"].point)
