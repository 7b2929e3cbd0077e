from __future__ import annotations

import numpy as np
import pytest

from pgdyno.stats.inference import drift_p_value, infer
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
