"""Means of many log-ratios from few rounds: moderated variances, and adjusted p-values and intervals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from pgdyno.stats.many_ratios import adjusted, levels_after_selection, many_means

FEW = np.array([[0.01, 0.03, -0.01, 0.02, 0.00], [0.10, 0.12, 0.09, 0.11, 0.13]])


def test_a_few_means_are_students() -> None:
    means = many_means(FEW, bias=0.0)
    for place, series in enumerate(FEW):
        expected = stats.ttest_1samp(series, 0.0)
        assert means.p_value[place] == pytest.approx(expected.pvalue)
        low, high = expected.confidence_interval(0.95)
        bounds = means.bounds(np.full(2, 0.95))
        assert (bounds[0][place], bounds[1][place]) == pytest.approx((low, high))


def test_a_bias_of_the_experiment_widens_and_adds_degrees_of_freedom() -> None:
    means = many_means(FEW, bias=0.02)
    own = np.var(FEW[0], ddof=1) / 5
    assert means.standard_error[0] == pytest.approx(math.sqrt(own + 0.0004))
    assert means.df[0] == pytest.approx(4 * ((own + 0.0004) / own) ** 2)


def test_equivalence_is_two_one_sided_tests() -> None:
    means = many_means(FEW, bias=0.0)
    error = np.std(FEW[0], ddof=1) / math.sqrt(5)
    below = stats.t.sf((math.log(1.02) - 0.01) / error, 4)
    assert means.p_equivalent(0.02)[0] == pytest.approx(below)
    assert means.p_equivalent(0.02)[1] > 0.99


def test_equal_variances_are_pooled() -> None:
    """With equal true variances, nearly all degrees of freedom of 200 quantities count for each."""
    random = np.random.default_rng(5)
    means = many_means(0.02 * random.standard_normal((200, 5)), bias=0.0)
    assert np.median(means.standard_error) == pytest.approx(0.02 / math.sqrt(5), rel=0.05)
    assert np.min(means.df) > 40


def test_different_variances_are_moderated_towards_their_scale() -> None:
    """Variances are drawn as Smyth's model says: s_0² d_0 / chi-squared of d_0, here 8."""
    random = np.random.default_rng(6)
    true = 0.02**2 * 8 / random.chisquare(8, 2000)
    means = many_means(np.sqrt(true)[:, None] * random.standard_normal((2000, 6)), bias=0.0)
    inside = np.abs(means.mean) <= special_t(means.df) * means.standard_error
    assert inside.mean() == pytest.approx(0.95, abs=0.02)
    plain = many_means(np.sqrt(true)[:9, None] * random.standard_normal((9, 6)), bias=0.0)
    assert np.median(means.df) > 1.5 * np.max(plain.df)


def special_t(df: np.ndarray) -> np.ndarray:
    return np.asarray(stats.t.ppf(0.975, df))


def test_what_all_share_in_a_round_is_not_pooled() -> None:
    """All quantities have the same five values: 500 of them know no more than one."""
    random = np.random.default_rng(7)
    shared = 0.05 * random.standard_normal(5)
    means = many_means(shared + 0.001 * random.standard_normal((500, 5)), bias=0.0)
    assert np.median(means.df) == pytest.approx(4, rel=0.1)
    assert np.median(means.standard_error) == pytest.approx(shared.std(ddof=1) / math.sqrt(5), rel=0.05)


def test_adjusted_p_values() -> None:
    """Worked by hand: the sum of 1/i for four is 25/12; 0.01 × 4 × 25/12 = 0.08333."""
    found = adjusted(np.array([0.01, 0.04, 0.9, 0.02]))
    # In order: 0.01 × 4/1, 0.02 × 4/2, 0.04 × 4/3, 0.9, each times 25/12; then the smallest of those above.
    assert found == pytest.approx([1 / 12, 1 / 9, 1.0, 1 / 12])


def test_found_ones_have_wider_intervals() -> None:
    levels = levels_after_selection(np.array([True, False, False, True]), 0.95)
    assert levels == pytest.approx([1 - 0.05 * 2 / (4 * 25 / 12), 0.95, 0.95, 1 - 0.05 * 2 / (4 * 25 / 12)])
