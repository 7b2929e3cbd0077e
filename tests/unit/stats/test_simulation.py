"""The short form of ``make simulate``: fixed seeds, so that it fails only if the statistics change.

The truth of every experiment is planted, never computed by the code under test.
"""

from __future__ import annotations

import math

import pytest
from bench import disturbance
from bench.noise import NOISES, Noise
from bench.simulate import (
    false_equivalence,
    false_under_holm,
    fixed_coverage,
    found_share,
    peeking,
    plain_t_coverage,
)

from pgdyno.model.experiments.verdict import VarianceComponents
from pgdyno.stats.power import minimum_detectable_effect

EXPERIMENTS = 2000
TOLERANCE = 3 * math.sqrt(0.05 * 0.95 / EXPERIMENTS)  # three standard errors of a share near 5 %
NORMAL = NOISES[0]
PROMISED = [noise for noise in NOISES if not noise.is_limit]


@pytest.mark.parametrize("layout", [(5, 2), (10, 2), (40, 1)])
def test_the_t_interval_covers_95_percent_of_normal_experiments(layout: tuple[int, int]) -> None:
    assert plain_t_coverage(layout, EXPERIMENTS) == pytest.approx(0.95, abs=TOLERANCE)


def test_rounds_that_lost_blocks_are_covered_as_well() -> None:
    covered = fixed_coverage(NORMAL, (8, 3), EXPERIMENTS, counts=(3, 3, 1, 3, 2, 3, 3, 1)).covered
    assert covered == pytest.approx(0.955, abs=TOLERANCE)


@pytest.mark.parametrize("noise", PROMISED, ids=lambda noise: noise.name)
def test_verdicts_that_are_given_rest_on_intervals_that_cover(noise: Noise) -> None:
    assert fixed_coverage(noise, (6, 2), EXPERIMENTS).covered >= 0.93 - TOLERANCE


def test_equal_arms_are_rarely_called_different() -> None:
    assert fixed_coverage(NORMAL, (6, 2), EXPERIMENTS).false <= 0.05 + TOLERANCE
    assert false_under_holm(NORMAL, 6, EXPERIMENTS) <= 0.05 + TOLERANCE


def test_anytime_valid_intervals_cover_at_all_looks_at_once() -> None:
    seen = peeking(NORMAL, 1000)
    assert seen.covered >= 0.95
    assert seen.false <= 0.05
    assert seen.naive > 0.15  # what looking at the t interval would do


def test_an_effect_at_the_margin_is_rarely_called_equivalent() -> None:
    assert false_equivalence((10, 2), EXPERIMENTS) <= 0.05 + TOLERANCE


@pytest.mark.parametrize("layout", [(6, 2), (20, 2)])
def test_the_minimum_detectable_effect_is_found_in_four_of_five_experiments(layout: tuple[int, int]) -> None:
    mde = minimum_detectable_effect(VarianceComponents(0.012, 0.010), *layout)
    assert found_share(layout, mde, EXPERIMENTS) == pytest.approx(0.80, abs=0.03)


def test_leaving_out_disturbed_seconds_narrows_intervals_and_errs_no_more_often() -> None:
    before, now = (
        disturbance.simulate(disturbance.bursts, rule, 200)
        for rule in (disturbance.whole_blocks, disturbance.windows)
    )
    assert now.half_width < 0.8 * before.half_width
    assert now.counted > before.counted
    assert now.false <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 200)


def test_on_a_machine_that_is_disturbed_throughout_nearly_all_counts() -> None:
    found = disturbance.simulate(disturbance.throughout, disturbance.windows, 100)
    assert found.counted > 0.95
    assert found.half_width > 0.03  # the intervals carry the noise
