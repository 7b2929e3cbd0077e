"""The knee of simulated curves, whose true knee follows from the law that they were made by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest

from pgdyno.model.experiments.scaling import Dip, Knee
from pgdyno.stats.curves import knee
from pgdyno.stats.curves.curve import Curve
from pgdyno.stats.curves.knee import confirm, first_levels, next_levels
from pgdyno.stats.curves.scaling_law import analyse, observe

Blocks = list[dict[int, float]]
Law = Callable[[int], float]


def usl(contention: float, crosstalk: float) -> Law:
    """Gunther's law, for a rate of 100 of one."""
    return lambda n: 100 * n / (1 + contention * (n - 1) + crosstalk * n * (n - 1))


def simulate(law: Law, levels: Sequence[int], *, blocks: int, noise: float, seed: int) -> Blocks:
    """Return blocks in which everything is up to 30 % slower, and each rate disturbed by ``noise``."""
    random = np.random.default_rng(seed)
    return [
        {n: law(n) * slowed * math.exp(random.normal(0, noise)) for n in levels}
        for slowed in random.uniform(0.7, 1.0, size=blocks)
    ]


def true_knee(law: Law, levels: Sequence[int]) -> int:
    highest = max(map(law, levels))
    return next(n for n in levels if law(n) >= 0.95 * highest)


def test_without_noise_the_knee_is_that_of_the_law() -> None:
    """X = 100N/(1 + 0.02(N−1) + 0.005N(N−1)): highest at √(0.98/0.005) = 14.

    By hand: X(14) = 1400/2.17 = 645.2, 95 % of it 612.9; X(9) = 900/1.52 = 592.1, X(10) = 1000/1.63 = 613.5.
    """
    law = usl(0.02, 0.005)
    levels = range(1, 21)
    found = observe(simulate(law, levels, blocks=6, noise=1e-6, seed=1))
    assert found.best == 14
    assert found.knee == Knee(10, 10, 0.05)
    assert str(found.knee) == "10"
    assert found.worse_from == 15
    assert found.is_unimodal


@pytest.mark.parametrize(("contention", "crosstalk"), [(0.05, 0.01), (0.0, 0.002), (0.3, 0.0)])
def test_the_knee_is_within_what_is_said_nearly_always(contention: float, crosstalk: float) -> None:
    """200 experiments of 8 blocks with 5 % of noise; 95 % is asked for, 180 would be unlikely (p < 0.003)."""
    law, levels = usl(contention, crosstalk), (1, 2, 3, 4, 6, 8, 12, 16)
    expected, hits = true_knee(law, levels), 0
    for seed in range(200):
        curve = Curve.of(simulate(law, levels, blocks=8, noise=0.05, seed=seed))
        found = knee.find_knee(curve)
        hits += found.low <= expected and (found.high is None or expected <= found.high)
    assert hits >= 181


def test_levels_just_below_the_limit_are_rarely_taken_for_as_good() -> None:
    """Seven levels at 94.9 % of the eighth, which alone is the knee: 100 experiments, 5 % may be wrong."""
    rates = dict.fromkeys(range(1, 8), 94.9) | {8: 100.0}
    found = [
        knee.find_knee(Curve.of(simulate(lambda n: rates[n], range(1, 9), blocks=8, noise=0.005, seed=seed)))
        for seed in range(100)
    ]
    assert sum(one.high is not None and one.high < 8 for one in found) <= 11


def test_more_is_rarely_said_to_be_worse_where_it_is_not() -> None:
    """Eight levels alike: 100 experiments, 5 % may be wrong."""
    curves = [
        Curve.of(simulate(lambda _: 50.0, range(1, 9), blocks=8, noise=0.02, seed=seed))
        for seed in range(100)
    ]
    assert sum(knee.worse_from(curve) is not None for curve in curves) <= 11


def test_more_is_not_worse_if_still_more_is_as_good() -> None:
    rates = {1: 50.0, 2: 100.0, 4: 60.0, 8: 99.9}
    found = observe(simulate(lambda n: rates[n], (1, 2, 4, 8), blocks=8, noise=0.005, seed=1))
    assert found.worse_from is None
    assert found.dips == (Dip(2, 4, 8),)


def test_pairs_that_contradict_each_other_leave_the_best_level() -> None:
    blocks: Blocks = [{1: 1.0, 2: 2.0}] * 3 + [{2: 1.0, 3: 2.0}] * 3 + [{3: 1.0, 1: 2.0}] * 3
    found = observe(blocks)
    assert found.knee.low == found.best
    assert found.knee.high is None


def test_more_blocks_narrow_it_down() -> None:
    law, levels = usl(0.05, 0.01), (1, 2, 3, 4, 6, 8, 12, 16)
    few, many = (
        knee.find_knee(Curve.of(simulate(law, levels, blocks=blocks, noise=0.03, seed=3)))
        for blocks in (4, 40)
    )
    assert many.high is not None
    assert few.high is None or few.high - few.low >= many.high - many.low
    assert many.low == many.high == true_knee(law, levels)


def test_where_nothing_differs_the_lowest_level_is_enough() -> None:
    found = observe(simulate(lambda _: 50.0, (1, 2, 4), blocks=20, noise=0.02, seed=5))
    assert found.knee == Knee(1, 1, 0.05)
    assert found.worse_from is None


def test_too_few_blocks_leave_it_open() -> None:
    found = observe(simulate(usl(0.0, 0.0), (1, 2, 4), blocks=2, noise=0.01, seed=5))
    assert found.knee == Knee(1, None, 0.05)
    assert str(found.knee) == "1 or more"
    assert found.levels[1].efficiency is None


def test_a_curve_with_two_peaks_is_said_to_have_them() -> None:
    rates = {1: 100.0, 2: 200.0, 4: 120.0, 8: 260.0}
    found = analyse(simulate(lambda n: rates[n], (1, 2, 4, 8), blocks=10, noise=0.02, seed=2))
    assert found.dips == (Dip(2, 4, 8),)
    assert not found.is_unimodal
    assert found.law is None


def test_curves_with_one_peak_are_rarely_said_to_have_two() -> None:
    """200 experiments; by chance it may happen in one of twenty."""
    law, levels = usl(0.1, 0.0), (1, 2, 4, 6, 8, 12, 16)
    wrong = sum(
        bool(knee.find_dips(Curve.of(simulate(law, levels, blocks=6, noise=0.05, seed=seed))))
        for seed in range(200)
    )
    assert wrong <= 10


def test_a_level_that_was_hardly_measured_is_neither_the_best_nor_in_the_way() -> None:
    """Without noise 4 is the best and 2 the knee, by 96 %; luck favours level 8 in its two rounds."""
    rates = {1: 50.0, 2: 96.0, 4: 100.0}
    blocks: Blocks = [{level: rate * k for level, rate in rates.items()} for k in (1.0, 0.9, 1.1, 0.8, 1.05)]
    blocks[3][8], blocks[4][8] = 0.8 * 110.0, 1.05 * 115.0
    found = analyse(blocks)
    assert found.best == 4
    assert found.knee == Knee(2, 2, 0.05)
    assert [(one.level, one.blocks) for one in found.levels] == [(1, 5), (2, 5), (4, 5), (8, 2)]
    assert found.levels[-1].ratio_to_best.high == math.inf


def rounds(rates: Mapping[int, float], factors: Sequence[float]) -> list[Mapping[int, float]]:
    """Return rounds whose levels are all slowed alike: pairs have no noise."""
    return [{level: rate * factor for level, rate in rates.items()} for factor in factors]


def test_the_smallest_level_that_is_enough_is_recommended_and_confirmed() -> None:
    confirmation = confirm(rounds({0: 50.0, 1: 96.0, 2: 100.0, 4: 90.0}, (1.0, 0.8, 1.1, 0.9, 1.0, 0.7)))
    assert confirmation is not None
    assert (confirmation.level, confirmation.against, confirmation.rounds) == (1, 2, 3)
    assert confirmation.ratio.point == pytest.approx(0.96)
    assert confirmation.is_confirmed


def test_luck_of_the_first_rounds_is_found_out() -> None:
    lucky = rounds({0: 99.0, 1: 100.0}, (1.0, 1.0, 1.0))
    fresh = [{0: 80.0, 1: 100.0}, {0: 81.0, 1: 100.0}, {0: 79.0, 1: 100.0}]
    confirmation = confirm([*lucky, *fresh])
    assert confirmation is not None
    assert (confirmation.level, confirmation.is_confirmed) == (0, False)
    assert confirmation.ratio.high < 0.95


def test_too_few_rounds_recommend_nothing() -> None:
    assert confirm(rounds({0: 1.0, 1: 2.0}, (1.0, 1.0, 1.0, 1.0, 1.0))) is None


def test_a_level_without_enough_fresh_rounds_is_not_recommended() -> None:
    measured = rounds({0: 1.0, 1: 2.0}, (1.0,) * 6)
    measured[3:] = [{0: one[0], 2: 1.5} for one in measured[3:]]
    assert confirm(measured) is None


def test_levels_that_were_ruled_out_may_be_missing_in_fresh_rounds_but_not_the_best() -> None:
    measured = rounds({0: 1.0, 1: 1.96, 2: 2.0}, (1.0,) * 6)
    measured[3:] = [{1: one[1], 2: one[2]} for one in measured[3:]]
    confirmation = confirm(measured)
    assert confirmation is not None
    assert (confirmation.level, confirmation.against, confirmation.is_confirmed) == (1, 2, True)
    measured[3:] = [{0: 1.0, 1: 1.96}] * 3
    assert confirm(measured) is None


def test_a_level_of_one_lucky_round_is_not_recommended() -> None:
    measured = rounds({0: 50.0, 1: 96.0, 2: 100.0}, (1.0,) * 6)
    measured[2] = {**measured[2], 4: 200.0}
    confirmation = confirm(measured)
    assert confirmation is not None
    assert (confirmation.level, confirmation.is_confirmed) == (1, True)


def test_a_level_that_is_not_enough_is_confirmed_in_one_of_twenty_at_most() -> None:
    """The true ratio is 0.95, the limit itself: of many experiments 5 % may confirm it."""
    random, confirmed, recommended = np.random.default_rng(1), 0, 0
    for _ in range(2000):
        measured = [
            {1: 0.95 * np.exp(random.normal(0, 0.05)), 2: np.exp(random.normal(0, 0.05))} for _ in range(10)
        ]
        found = confirm(measured)
        assert found is not None
        if found.level == 1:
            recommended += 1
            confirmed += found.is_confirmed
    assert recommended > 500
    # Three standard errors of the share above 5 %.
    assert confirmed / recommended < 0.05 + 3 * (0.05 * 0.95 / recommended) ** 0.5
    assert confirmed > 0


@pytest.mark.parametrize(
    ("highest", "expected"),
    [(3, (0, 1, 2, 3)), (5, (0, 1, 2, 3, 4, 5)), (12, (0, 2, 4, 8, 12)), (32, (0, 2, 4, 8, 16, 32))],
)
def test_it_begins_with_the_ends_and_what_doubles(highest: int, expected: tuple[int, ...]) -> None:
    assert first_levels(range(highest + 1)) == expected


@pytest.mark.parametrize(("contention", "crosstalk"), [(0.02, 0.005), (0.2, 0.0), (0.0, 0.001)])
def test_the_knee_of_32_levels_is_found_with_fewer(contention: float, crosstalk: float) -> None:
    """Noise of 1 %, three blocks at a time: measure, look, measure what is asked for."""
    law, candidates, random = usl(contention, crosstalk), range(1, 33), np.random.default_rng(4)
    highest = max(map(law, candidates))
    expected = next(n for n in candidates if law(n) >= 0.95 * highest)
    levels, blocks = first_levels(candidates), []
    for _ in range(40):
        for _ in range(3):
            slowed = random.uniform(0.7, 1.0)
            blocks.append({n: law(n) * slowed * math.exp(random.normal(0, 0.01)) for n in levels})
        found = observe(blocks)
        levels = next_levels(candidates, found, 99)
        if not levels:
            break
    assert found.knee.low <= expected
    assert found.knee.high is None or expected <= found.knee.high
    assert (found.knee.high or 99) - found.knee.low <= 1
    assert len(found.levels) < 26
    assert sum(map(len, blocks)) < 32 * len(blocks)


def test_a_peak_between_two_coarse_levels_is_found() -> None:
    """X = N/(1 + N(N−1)/128): highest at √128 = 11.3, 95 % of that from 9 on."""
    law, candidates = usl(0.0, 1 / 128), range(1, 33)
    levels, blocks = first_levels(candidates), []
    for _ in range(20):
        if not levels:
            break
        blocks += [{n: law(n) * slowed for n in levels} for slowed in (1.0, 0.9, 1.1, 1.05, 0.95)]
        found = observe(blocks)
        levels = next_levels(candidates, found, 99)
    assert found.best == 11
    assert (found.knee.low, found.knee.high) == (9, 9)


def test_a_knee_whose_neighbour_was_not_tried_is_none_yet() -> None:
    """Measured at 1, 8 and 16; the rate stays from 8 on, so that the knee may lie anywhere after 1."""
    blocks = [{1: 10.0 * k, 8: 100.0 * k, 16: 100.1 * k} for k in (1.0, 0.9, 1.1, 1.02, 0.95)]
    found = observe(blocks)
    assert (found.knee.low, found.knee.high) == (8, 8)
    assert next_levels(range(1, 17), found, 5) == (3, 8, 16)
    assert next_levels(range(1, 17), found, 4) == ()  # no time is left for a level more


def test_nothing_more_is_asked_for_once_it_is_found() -> None:
    blocks = [{1: 10.0 * k, 2: 100.0 * k, 3: 100.1 * k} for k in (1.0, 0.9, 1.1, 1.02, 0.95)]
    assert next_levels(range(1, 4), observe(blocks), 99) == ()
