"""Estimates of a plan's outcome, and their bounds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import bootstrap
from tests.golden.synthetic import experiment as synthetic

from pgdyno.measure.decisions.plan_outcome import Estimate, estimate, estimate_alone, outcomes_of, stalls


def test_bounds_are_those_of_students_t() -> None:
    # t(13) has 5 % above 1.770933 and 2.5 % above 2.160369 (tables of Student's t).
    found = Estimate(0.1, 0.02, 13.0, 14)
    assert found.lower() == pytest.approx(math.exp(0.1 - 0.02 * 1.770933), rel=1e-6)
    assert found.upper(0.025) == pytest.approx(math.exp(0.1 + 0.02 * 2.160369), rel=1e-6)
    assert found.p_at_most(math.exp(0.1)) == pytest.approx(0.5)
    assert found.p_at_most(math.exp(0.1 - 0.02 * 2.160369)) == pytest.approx(0.025, rel=1e-5)


def test_drift_gives_the_bounds_of_the_worse_half() -> None:
    level = [[0.30], [0.31], [0.29], [0.305], [0.30], [0.10], [0.11], [0.09], [0.105], [0.10]]
    found = estimate(level)
    assert found is not None
    assert found.ratio == pytest.approx(math.exp(0.101))
    longer = estimate(level, is_gain=False)
    assert longer is not None
    assert longer.ratio == pytest.approx(math.exp(0.301))
    steady = estimate([[0.30], [0.31], [0.29], [0.30], [0.31], [0.30], [0.29], [0.305], [0.295], [0.30]])
    assert steady is not None
    assert steady.ratio == pytest.approx(math.exp(0.30))


def test_the_bias_of_a_design_widens_one_bound_of_throughput_alone() -> None:
    plain = synthetic()
    biased = replace(plain, design=replace(plain.design, bias=0.005))
    for one, other in zip(outcomes_of(biased, "plan"), outcomes_of(plain, "plan"), strict=True):
        assert one.throughput is not None
        assert other.throughput is not None
        assert one.throughput == replace(other.throughput, bias=0.005)
        assert one.throughput.upper() == other.throughput.upper() == other.throughput.upper_with_bias()
        assert one.throughput.upper_with_bias() > one.throughput.upper()


def test_four_rounds_give_no_bound() -> None:
    assert estimate([[0.3], [0.31], [0.29], [0.3]]) is None


def test_the_bound_over_all_rounds_is_that_of_a_paired_bootstrap() -> None:
    random = np.random.default_rng(3)
    base = np.exp(random.normal(1.0, 0.2, 12))
    plan = base * np.exp(random.normal(0.0, 0.1, 12))
    found = stalls(plan.tolist(), base.tolist())
    again = bootstrap(
        (plan, base),
        lambda one, other, axis: one.mean(axis) / other.mean(axis),
        paired=True,
        confidence_level=0.9,
        n_resamples=20_000,
        method="percentile",
        rng=random,
    )
    assert found is not None
    assert found.ratio == pytest.approx(plan.mean() / base.mean())
    assert found.upper == pytest.approx(again.confidence_interval.high, abs=0.01)


def test_one_round_in_thirty_with_a_tail_ten_times_as_long_shows() -> None:
    found = stalls([10.0] + [1.0] * 29, [1.0] * 30)
    assert found is not None
    assert found.ratio == pytest.approx(1.3)
    assert found.upper > 1.5
    assert math.exp(math.log(10) / 30) == pytest.approx(1.08, abs=0.005)  # as the mean of logarithms has it


def test_rounds_that_slow_both_servers_down_cancel() -> None:
    slow = [1.0, 5.0, 1.0, 1.0, 9.0, 1.0]
    found = stalls([1.02 * one for one in slow], slow)
    assert found is not None
    assert found.ratio == pytest.approx(1.02)
    assert found.upper == pytest.approx(1.02)


def test_four_rounds_give_no_bound_over_all_rounds() -> None:
    assert stalls([1.0] * 4, [1.0] * 4) is None


def test_a_few_stretches_give_the_t_interval_of_their_logarithms() -> None:
    found = estimate_alone([0.1, 0.2, 0.3])
    assert found is not None
    # Standard error 0.1 / √3; t(2) has 5 % above 2.919986.
    assert found.upper() == pytest.approx(math.exp(0.2 + 2.919986 * 0.1 / math.sqrt(3)), rel=1e-6)
    assert estimate_alone([0.1]) is None
