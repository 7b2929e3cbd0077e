"""Points of the charts, taken out of blocks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic import experiment

from pgdyno.measure.view.series import arm_series, blocks_of, ratios, typical
from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment


def block(round_: int, index: int, values: tuple[float, float], void: str | None = None) -> Block:
    arms = (
        ArmBlock("default", 1, 1.0, {"throughput_tps": values[0]}),
        ArmBlock("plan", 1, 1.0, {"throughput_tps": values[1]}),
    )
    return Block("w", round_, index, (round_ * 10 + index) * 1000, arms, void)


def small(*blocks: Block) -> Experiment:
    return replace(experiment(), workloads=("w",), blocks=blocks)


def test_blocks_come_in_the_order_in_which_they_ran_and_count_from_one() -> None:
    trials = [
        t for t, _ in blocks_of(small(block(1, 0, (1, 1)), block(0, 1, (1, 1)), block(0, 0, (1, 1))), "w")
    ]
    assert [(t.position, t.round, t.block) for t in trials] == [(0, 1, 1), (1, 1, 2), (2, 2, 1)]


def test_ratio_is_variant_over_baseline() -> None:
    points = ratios(small(block(0, 0, (100, 120))), "w", "throughput_tps", "plan", "default")
    assert [p.value for p in points] == [1.2]


def test_ratio_needs_both_arms_to_have_achieved_something() -> None:
    blocks = (block(0, 0, (0, 120)), block(0, 1, (100, 0)))
    assert ratios(small(*blocks), "w", "throughput_tps", "plan", "default") == ()


def test_void_blocks_are_points_but_do_not_count() -> None:
    of = small(block(0, 0, (100, 200)), block(0, 1, (400, 800)), block(0, 2, (1, 1), "stolen"))
    assert typical(of, "w", "throughput_tps", "default") == pytest.approx(200)  # √(100 × 400)
    assert [p.trial.void for p in arm_series(of, "w", "throughput_tps")[0].points] == [None, None, "stolen"]


def test_unmeasured_metric_has_no_points_and_no_typical_value() -> None:
    of = small(block(0, 0, (1, 1)))
    assert typical(of, "w", "latency_ms_p99", "plan") is None
    assert arm_series(of, "w", "latency_ms_p99")[0].points == ()
