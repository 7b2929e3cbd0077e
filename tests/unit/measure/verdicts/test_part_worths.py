"""What each part of a configuration is worth: on a system whose effects are known."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from tests.golden.synthetic import experiment as of_a_plan
from tests.golden.synthetic_layers import TIMES
from tests.golden.synthetic_layers import experiment as with_layers

from pgdyno.measure.design.schedule import seats
from pgdyno.measure.verdicts.analysis import contrast_intervals
from pgdyno.measure.verdicts.part_worths import Attribution, attributed_parts, attributions
from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.model.variants.variant import Variant

PARTS = ("buffers", "pages", "build", "jit", "cache", "wal")
MAIN = {"buffers": 0.30, "pages": 0.10, "build": 0.20, "jit": 0.0, "cache": 0.0, "wal": -0.05}  # ln
PAIRS = {frozenset({"buffers", "pages"}): 0.12, frozenset({"build", "wal"}): -0.04}
SHAPLEY = {"buffers": 0.36, "pages": 0.16, "build": 0.18, "jit": 0.0, "cache": 0.0, "wal": -0.07}
WHOLE = 0.30 + 0.10 + 0.20 - 0.05 + 0.12 - 0.04
SEAT_SPREAD, NOISE = 0.05, 0.02


def log_throughput(parts: Sequence[str], triple: float = 0.0) -> float:
    pairs = sum(PAIRS.get(frozenset(pair), 0.0) for pair in combinations(parts, 2))
    return sum(MAIN[part] for part in parts) + pairs + triple * ({"buffers", "pages", "build"} <= set(parts))


def servers(triple: float = 0.0) -> Mapping[str, float]:
    logs = {"default": 0.0, "plan": log_throughput(PARTS, triple)}
    for part in PARTS:
        logs[f"without-{part}"] = log_throughput([one for one in PARTS if one != part], triple)
        logs[f"only-{part}"] = log_throughput([part], triple)
    return logs


def system(
    random: np.random.Generator, rounds: int = 28, triple: float = 0.0, noise: float = NOISE
) -> Experiment:
    """Return an experiment with one workload, a block a round, drift, effects of seats, and noise."""
    logs = servers(triple)
    of_seats = random.normal(0, SEAT_SPREAD, len(logs))
    blocks = []
    for round_ in range(rounds):
        drift, taken = random.normal(0, 0.2), seats(len(logs), round_)
        arms = tuple(
            ArmBlock(
                name,
                100,
                1.0,
                {
                    "throughput_tps": math.exp(
                        7 + log + drift + of_seats[taken[place]] + random.normal(0, noise)
                    )
                },
            )
            for place, (name, log) in enumerate(logs.items())
        )
        blocks.append(Block("sysbench-read-only", round_, 0, round_ * 10**10, arms))
    base = of_a_plan()
    return replace(
        base,
        variants=tuple(Variant(name) for name in logs),
        workloads=("sysbench-read-only",),
        blocks=tuple(blocks),
        verdicts=(),
    )


def taken_apart(experiment: Experiment) -> Attribution:
    (found,) = attributions(experiment)
    return found


def test_worths_are_shapley_values_and_add_up_to_the_whole() -> None:
    found = taken_apart(system(np.random.default_rng(1), noise=0.001))
    worths = {one.name: math.log(one.worth.point) for one in found.parts}
    assert worths == pytest.approx(SHAPLEY, abs=0.002)
    assert math.log(found.whole.point) == pytest.approx(WHOLE, abs=0.002)
    assert math.log(found.remainder.point) == pytest.approx(0.0, abs=0.003)
    assert sum(worths.values()) + math.log(found.remainder.point) == pytest.approx(
        math.log(found.whole.point)
    )
    assert [one.name for one in found.parts][:3] == ["buffers", "build", "pages"]


def test_parts_that_need_or_hinder_each_other_are_named() -> None:
    found = taken_apart(system(np.random.default_rng(2), noise=0.005))
    directions = {
        one.name: (one.interaction.low > 1) - (one.interaction.high < 1)
        for one in found.parts
        if one.interaction is not None
    }
    assert directions == {"buffers": 1, "pages": 1, "build": -1, "wal": -1, "jit": 0, "cache": 0}


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    covered = []
    for seed in range(40):
        found = taken_apart(system(np.random.default_rng(100 + seed)))
        covered += [one.worth.low <= math.exp(SHAPLEY[one.name]) <= one.worth.high for one in found.parts]
        covered.append(found.remainder.low <= 1 <= found.remainder.high)
    assert np.mean(covered) > 0.93


def test_small_parts_are_one_group_with_an_interval_of_its_own() -> None:
    found = taken_apart(system(np.random.default_rng(4), noise=0.01))
    assert {one.name for one in found.small} == {"jit", "cache"}
    assert found.together is not None
    assert found.together.low < 1 < found.together.high
    assert "wal" in {one.name for one in found.separate}


def test_three_parts_that_depend_on_one_another_show_in_the_remainder() -> None:
    # With one term of three the parts share twice a half of it: the remainder is −1/2 of it.
    found = taken_apart(system(np.random.default_rng(5), triple=0.2, noise=0.001))
    assert math.log(found.remainder.point) == pytest.approx(-0.1, abs=0.004)
    assert found.remainder.high < 1


def test_seats_are_not_taken_for_noise() -> None:
    random = np.random.default_rng(6)
    widths = {}
    for rounds in (13, 14):  # 14 arms: with fewer rounds seats cannot be told
        found = taken_apart(system(random, rounds=rounds, noise=0.005))
        widths[rounds] = np.mean([one.worth.high - one.worth.low for one in found.parts])
    assert widths[14] < widths[13] / 3


def test_a_contrast_of_two_arms_is_their_ratio() -> None:
    measured = system(np.random.default_rng(7), noise=0.001)
    found = contrast_intervals(measured, "sysbench-read-only", {"": {"plan": 1.0, "only-buffers": -1.0}})
    assert math.log(found[""].point) == pytest.approx(WHOLE - 0.30, abs=0.002)


def test_layers_that_were_only_left_out_are_worth_what_is_lost_without() -> None:
    for found in attributions(with_layers()):
        planted = TIMES[found.workload]
        product = found.remainder.point
        for part in found.parts:
            wanted = planted["plan"] / planted[f"without-{part.name}"]
            assert part.worth.point == pytest.approx(wanted, rel=0.01)
            assert (part.alone, part.interaction) == (None, None)
            product *= part.worth.point
        assert found.whole.point == pytest.approx(planted["plan"], rel=0.01)
        assert product == pytest.approx(found.whole.point)


def test_a_block_counts_only_with_all_its_arms() -> None:
    base = with_layers()
    void = replace(base, blocks=tuple(replace(one, void="stolen") for one in base.blocks if one.round < 4))
    spoilt = replace(base, blocks=(*void.blocks, *(one for one in base.blocks if one.round >= 4)))
    clean = replace(base, blocks=tuple(one for one in base.blocks if one.round >= 4))
    assert attributions(spoilt) == attributions(clean)


def test_the_plan_without_what_is_never_applied_is_no_part() -> None:
    base = with_layers()
    beside = replace(base, variants=(*base.variants, Variant("without-plan_cache_mode")))
    assert attributed_parts(beside) == ["application", "compiler", "system"]
    assert {part.name for one in attributions(beside) for part in one.parts} == {*attributed_parts(base)}


def test_an_experiment_that_took_nothing_apart_has_no_attribution() -> None:
    assert attributions(replace(with_layers(), variants=with_layers().variants[:2])) == ()


def test_each_arm_of_a_contrast_has_half_of_the_bias_of_a_pair() -> None:
    # Next to no noise: a pair's interval is 1.96 · 0.5 %, that of the mean of two pairs 1/√2 of it.
    known = system(np.random.default_rng(5), noise=1e-6)
    found = replace(known, design=known.design.with_bias())
    pair = {"only-buffers": 1.0, "default": -1.0}
    means = {"only-buffers": 0.5, "default": -0.5, "plan": 0.5, "without-buffers": -0.5}
    widths = {
        name: math.log(one.high / one.low) / 2
        for name, one in contrast_intervals(found, found.workloads[0], {"pair": pair, "means": means}).items()
    }
    assert widths["pair"] == pytest.approx(0.0098, rel=0.02)
    assert widths["means"] == pytest.approx(0.0098 / math.sqrt(2), rel=0.02)
