from __future__ import annotations

import numpy as np
import pytest

from pgdyno.stats import nested
from pgdyno.stats.sample import Sample, autocorrelation_within_rounds, lag_one, variance_inflation


def test_round_means_are_those_of_their_own_blocks() -> None:
    sample = Sample.of([[1.0, 2.0, 3.0], [10.0], [4.0, 6.0]])
    assert sample.round_means.tolist() == [2.0, 10.0, 5.0]
    assert sample.deviations_within.tolist() == [-1.0, 0.0, 1.0, 0.0, -1.0, 1.0]
    assert (sample.rounds, sample.blocks) == (3, 6)


def test_a_round_that_lost_all_its_blocks_does_not_count() -> None:
    assert Sample.of([[0.1], [], [0.2]]).rounds == 2


def test_the_first_rounds_are_what_was_known_then() -> None:
    assert Sample.of([[1.0, 2.0], [3.0], [4.0]]).first_rounds(2).values.tolist() == [1.0, 2.0, 3.0]


def test_a_log_ratio_that_is_not_finite_is_an_error() -> None:
    with pytest.raises(ValueError, match="a log-ratio is not finite: inf"):
        Sample.of([[0.1, float("inf")]])


def test_lag_one_autocorrelation_is_that_of_acf() -> None:
    """acf(z, plot = FALSE)$acf[2]."""
    z = np.array([0.031, 0.018, 0.044, 0.027, 0.012, 0.038])
    assert float(lag_one(z)) == pytest.approx(-0.480283425755)


def test_variance_inflation_is_that_of_the_full_correlation_matrix() -> None:
    """R: n <- 7; sum(.4^abs(outer(1:n, 1:n, "-")))/n."""
    assert float(variance_inflation(np.array(0.4), 7)) == pytest.approx(2.01639314286)


def test_rounds_that_alternate_do_not_narrow_the_interval() -> None:
    means = np.array([0.01, 0.03, 0.01, 0.03, 0.01, 0.03])
    estimated = nested.estimate(Sample.of([[mean] for mean in means]))
    assert float(estimated.widening) == 1.0
    assert float(estimated.standard_error) == pytest.approx(float(means.std(ddof=1)) / 6**0.5)


def test_rounds_that_resemble_their_neighbours_widen_the_interval() -> None:
    """By hand: deviations -2 -1 … 2, r₁ = (2 + 0 + 0 + 2)/10 = 0.4; f = 1 + 2(4/5·0.4 + 3/5·0.16 + …)."""
    estimated = nested.estimate(Sample.of([[value / 100] for value in (1.0, 2.0, 3.0, 4.0, 5.0)]))
    assert float(estimated.autocorrelation) == pytest.approx(0.4)
    inflation = 1 + 2 * (0.8 * 0.4 + 0.6 * 0.16 + 0.4 * 0.064 + 0.2 * 0.0256)
    assert float(estimated.widening) == pytest.approx(inflation**0.5)


def test_a_constant_series_has_no_autocorrelation() -> None:
    assert float(lag_one(np.array([1.0, 1.0, 1.0]))) == 0.0


def test_two_blocks_per_round_cannot_tell_whether_blocks_resemble_each_other() -> None:
    assert autocorrelation_within_rounds(Sample.of([[1.0, 2.0], [3.0, 5.0]])) is None


def test_autocorrelation_within_rounds_is_pooled_and_freed_of_its_bias() -> None:
    """By hand: deviations (-1, 0, 1) twice give r = 0 of 4; the bias of three white values is 1/3."""
    sample = Sample.of([[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]])
    within = autocorrelation_within_rounds(sample)
    assert within is not None
    assert float(within) == pytest.approx(1 / 3)


def test_white_noise_within_rounds_shows_no_autocorrelation_on_average() -> None:
    values = np.random.default_rng(3).normal(size=(20_000, 16))
    within = autocorrelation_within_rounds(Sample(values, np.array([4, 4, 3, 5])))
    assert within is not None
    assert float(within.mean()) == pytest.approx(0.0, abs=0.02)
