from __future__ import annotations

import math

import numpy as np
import pytest

from pgdyno.stats import anytime, nested
from pgdyno.stats.inference import drift_p_value, infer, infer_product, product_estimate, tost_p_value
from pgdyno.stats.sample import Sample


@pytest.mark.parametrize(
    ("means", "p_value"),
    [
        ((0.01, 0.013, 0.011, 0.018, 0.02, 0.019, 0.024, 0.026), 0.000186754495232),
        ((0.031, 0.018, -0.004, 0.027, 0.012, 0.038, -0.009, 0.021, 0.016, 0.007), 0.5201779225473),
    ],
)
def test_the_drift_test_is_that_of_lm(means: tuple[float, ...], p_value: float) -> None:
    """R 4.2.2: summary(lm(x ~ seq_along(x)))$coefficients[2, 4]."""
    assert float(drift_p_value(np.array(means))) == pytest.approx(p_value, rel=1e-6)


def test_two_rounds_cannot_drift() -> None:
    assert float(drift_p_value(np.array([0.0, 1.0]))) == 1.0


@pytest.mark.parametrize(
    ("rounds", "is_anytime", "is_withheld"),
    [(4, False, True), (5, False, False), (5, True, True), (6, True, False)],
)
def test_few_rounds_withhold_the_verdict(rounds: int, is_anytime: bool, is_withheld: bool) -> None:  # noqa: FBT001 — parameters of the test
    sample = Sample.of([[0.01 * (-1) ** index] for index in range(rounds)])
    assert bool(infer(sample, level=0.95, margin=0.02, is_anytime=is_anytime).is_withheld) is is_withheld


def test_an_effect_that_moves_withholds_the_verdict() -> None:
    sample = Sample.of([[0.01 * index + 0.001 * (index % 2)] for index in range(8)])
    assert bool(infer(sample, level=0.95, margin=0.02, is_anytime=False).is_withheld)


def test_equivalence_is_shown_exactly_when_its_interval_lies_within_the_margin() -> None:
    values = np.random.default_rng(11).normal(0.0, 0.02, size=(500, 8))
    for is_anytime in (False, True):
        inference = infer(
            Sample(values, np.ones(8, dtype=np.int64)), level=0.95, margin=0.02, is_anytime=is_anytime
        )
        half_width = inference.critical_equivalence * inference.estimate.standard_error
        is_within = np.abs(inference.estimate.mean) + half_width <= np.log(1.02)
        assert (is_within == (inference.p_equivalence <= 1 - 0.95)).all()
        assert is_anytime or 0 < is_within.sum() < 500


def test_a_difference_is_found_exactly_when_the_interval_excludes_no_change() -> None:
    values = np.random.default_rng(12).normal(0.01, 0.02, size=(500, 8))
    for is_anytime in (False, True):
        inference = infer(
            Sample(values, np.ones(8, dtype=np.int64)), level=0.95, margin=0.02, is_anytime=is_anytime
        )
        is_excluded = (inference.low > 0) | (inference.high < 0)
        assert (is_excluded == (inference.p_value <= 1 - 0.95)).all()
        assert 0 < is_excluded.sum() < 500


@pytest.mark.parametrize(("rounds", "is_anytime"), [(40, False), (40, True), (200, True)])
def test_no_number_of_rounds_or_looks_makes_an_interval_narrower_than_its_bias(
    rounds: int,
    is_anytime: bool,  # noqa: FBT001 — parameters of the test
) -> None:
    # 1.96 · 0.5 % = 0.98 %, whatever the rounds show: here next to no noise.
    sample = Sample.of([[0.0001 * (-1) ** index] for index in range(rounds)])
    found = infer(sample, level=0.95, margin=0.02, is_anytime=is_anytime, bias=0.005)
    assert float(found.high - found.low) / 2 == pytest.approx(0.0098, rel=0.01)
    without = infer(sample, level=0.95, margin=0.02, is_anytime=is_anytime)
    assert float(without.high - without.low) / 2 < 0.0005


UNCHANGED = [[0.003], [-0.006], [0.008], [-0.002], [0.005], [-0.007], [0.004], [0.001]]


def test_tost_is_the_larger_of_two_one_sided_t_tests() -> None:
    estimated = nested.estimate(Sample.of(UNCHANGED))
    assert float(tost_p_value(estimated, 0.02, nested.one_sided_p)) == pytest.approx(1.00547574476e-05)


def test_an_effect_beyond_the_margin_is_not_equivalent() -> None:
    changed = nested.estimate(Sample.of([[0.031], [0.018], [0.044], [0.027], [0.012], [0.038]]))
    assert float(tost_p_value(changed, 0.02, nested.one_sided_p)) == pytest.approx(0.928801182155)


def test_looking_makes_equivalence_harder_to_show() -> None:
    estimated = nested.estimate(Sample.of(UNCHANGED))
    looked = tost_p_value(estimated, 0.02, anytime.one_sided_p)
    assert float(looked) > float(tost_p_value(estimated, 0.02, nested.one_sided_p))


FINE = [[0.10], [0.12], [0.11], [0.09], [0.13]]
COARSE = [[-0.30], [0.20], [0.10], [-0.10], [0.35]]


def test_log_ratios_and_variances_add() -> None:
    estimated = product_estimate([nested.estimate(Sample.of(step)) for step in (FINE, COARSE)])
    assert float(estimated.mean) == pytest.approx(0.16)
    assert float(estimated.standard_error) == pytest.approx(math.sqrt(0.01305))
    assert float(estimated.df) == pytest.approx(0.01305**2 / ((0.00005**2 + 0.013**2) / 4))
    assert estimated.rounds == 5


def test_the_interval_is_that_of_welch() -> None:
    found = infer_product([Sample.of(FINE), Sample.of(COARSE)], level=0.95, margin=0.02)
    assert float(found.low) == pytest.approx(-0.1562190750332)
    assert float(found.high) == pytest.approx(0.4762190750332)
    assert float(found.p_value) == pytest.approx(0.23341885725261)


def test_fine_steps_are_shown_together() -> None:
    """Twice FINE: mean 0.22, s = √0.0001 = 0.01, ν = 8, t(0.975, 8) = 2.306004 from the tables."""
    found = infer_product([Sample.of(FINE), Sample.of(FINE)], level=0.95, margin=0.02)
    assert float(found.low) == pytest.approx(0.22 - 0.02306004, abs=1e-8)
    assert float(found.high) == pytest.approx(0.22 + 0.02306004, abs=1e-8)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """10 000 chains of a fine, a coarse and a fine step, of 5 rounds each, that change nothing in all."""
    random = np.random.default_rng(20261122)
    counts = np.ones(5, dtype=np.int64)
    chains = [Sample(mean + noise * random.standard_normal((10_000, 5)), counts)
              for mean, noise in ((0.1, 0.01), (-0.3, 0.1), (0.2, 0.01))]  # fmt: skip
    inference = infer_product(chains, level=0.95, margin=0.02)
    covered = float(np.mean((inference.low <= 0) & (inference.high >= 0)))
    assert 0.945 <= covered <= 0.985  # the widening of independent rounds by chance is on the safe side
