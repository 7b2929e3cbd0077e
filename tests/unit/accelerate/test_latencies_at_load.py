"""Rates and latencies of an open loop: by hand from made-up blocks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic import experiment as of_a_plan

from pgdyno.accelerate.latencies_at_load import latencies_at_load, rates_at_load
from pgdyno.model.experiments.experiment import ArmBlock, Block, Experiment
from pgdyno.model.experiments.verdict import AtLoad, LatencyAtLoad
from pgdyno.model.variants.variant import Variant

P50, P99 = "latency_ms_p50", "latency_ms_p99"


def block(round_: int, baseline: dict[str, float], plan: dict[str, float], void: str | None = None) -> Block:
    arms = (ArmBlock("default", 10, 1.0, baseline), ArmBlock("plan", 10, 1.0, plan))
    return Block("w", round_, 0, 10**9, arms, void=void)


def experiment(*blocks: Block) -> Experiment:
    variants = (Variant("default"), Variant("plan"))
    return replace(of_a_plan(), id="e", variants=variants, workloads=("w",), blocks=blocks)


def test_the_rate_is_a_share_of_what_the_baseline_did_in_blocks_that_count() -> None:
    found = experiment(
        block(0, {"throughput_tps": 900.0}, {"throughput_tps": 2000.0}),
        block(1, {"throughput_tps": 1100.0}, {"throughput_tps": 2000.0}),
        block(2, {"throughput_tps": 5.0}, {"throughput_tps": 2000.0}, void="stolen"),
    )
    assert rates_at_load(found, 0.6) == {"w": pytest.approx(600.0)}
    assert rates_at_load(experiment(), 0.6) == {}


def test_latencies_are_means_with_the_interval_of_their_ratio() -> None:
    # Ratios of 0.4, 0.5, 0.625, 0.5 and 0.5, whose geometric mean is 0.5.
    plans = (0.8, 1.0, 1.25, 1.0, 1.0)
    found = experiment(*(block(n, {P50: 2.0, P99: 8.0}, {P50: ms, P99: 8.0}) for n, ms in enumerate(plans)))
    (of_workload,) = latencies_at_load(found, "plan", {"w": 600.0, "other": 1.0}, 0.6)
    assert (of_workload.rate_tps, of_workload.share, of_workload.experiment_id) == (600.0, 0.6, "e")
    p50, p99 = of_workload.latencies
    assert (p50.metric, p50.baseline_ms) == (P50, 2.0)
    assert p50.plan_ms == pytest.approx(1.01)
    assert p50.ratio is not None
    # Standard deviation of the logarithms 0.1578, over √5 0.0706; t with 4 degrees of freedom 2.776: 0.1959.
    bounds = (p50.ratio.low, p50.ratio.point, p50.ratio.high)
    assert bounds == pytest.approx((0.5 * 0.8221, 0.5, 0.5 * 1.2164), rel=1e-3)
    assert p99.ratio is None  # it never varied: it is unknown how sure it is


def test_one_round_gives_figures_without_an_interval() -> None:
    found = experiment(block(0, {P50: 2.0}, {P50: 1.0}))
    assert latencies_at_load(found, "plan", {"w": 600.0}, 0.6) == (
        AtLoad("w", 600.0, 0.6, "e", (LatencyAtLoad(P50, 2.0, 1.0, None),)),
    )
