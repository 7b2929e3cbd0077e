"""Values from R 4.2.2 with lme4 1.1-31 and lmerTest 3.1-3, calls named at each."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from pgdyno.base.facts import Unknown
from pgdyno.model.experiments.verdict import Interval
from pgdyno.stats import nested
from pgdyno.stats.nested import mean_amount
from pgdyno.stats.sample import Sample

# Yield of dyestuff by batch: Davies, Goldsmith (1972), Statistical Methods in Research and Production, table
# 6.3; lme4's data set "Dyestuff".
DYESTUFF = [
    [1545.0, 1440.0, 1440.0, 1520.0, 1580.0],
    [1540.0, 1555.0, 1490.0, 1560.0, 1495.0],
    [1595.0, 1550.0, 1605.0, 1510.0, 1560.0],
    [1445.0, 1440.0, 1595.0, 1465.0, 1545.0],
    [1595.0, 1630.0, 1515.0, 1635.0, 1625.0],
    [1520.0, 1455.0, 1450.0, 1480.0, 1445.0],
]
RAGGED = [
    [0.021, 0.034, 0.028],
    [0.005, 0.011],
    [0.040, 0.031, 0.036],
    [0.017],
    [0.024, 0.015, 0.030],
    [0.009, 0.002],
]


def test_variance_components_of_balanced_data_are_those_of_lme4() -> None:
    """VarCorr(lmer(Yield ~ 1 + (1|Batch), Dyestuff)); for balanced data REML and ANOVA agree."""
    between, within = nested.anova_components(Sample.of(DYESTUFF))
    assert float(between) == pytest.approx(1764.05, rel=1e-7)
    assert float(within) == pytest.approx(2451.25, rel=1e-7)


def test_the_t_interval_of_balanced_data_is_that_of_lmertest() -> None:
    """summary(lmer(…)): estimate 1527.5, standard error 19.38341, df 5; qt(.975, 5) times it is 49.82665."""
    estimated = nested.estimate(Sample.of(DYESTUFF))
    assert float(estimated.mean) == pytest.approx(1527.5)
    assert float(estimated.standard_error) == pytest.approx(19.38341218, rel=1e-8)
    assert float(estimated.df) == pytest.approx(5.0)
    half_width = float(nested.critical_t(estimated, 0.95) * estimated.standard_error)
    assert half_width == pytest.approx(49.82664726, rel=1e-8)


def test_variance_components_of_ragged_data_are_those_of_aov() -> None:
    """R: s <- summary(aov(y ~ r))[[1]]; n0 <- (N - sum(n^2)/N)/(R-1); (MSA - MSE)/n0."""
    between, within = nested.anova_components(Sample.of(RAGGED))
    assert float(between) == pytest.approx(0.000126283072917, rel=1e-9)
    assert float(within) == pytest.approx(3.52291666667e-05, rel=1e-9)


def test_ragged_rounds_have_the_df_of_satterthwaites_formula_in_matrices() -> None:
    """R: df <- sum(diag(M%*%V))^2 / sum(diag(M%*%V%*%M%*%V)), se <- sd(means)/sqrt(R)."""
    estimated = nested.estimate(Sample.of(RAGGED))
    assert float(estimated.mean) == pytest.approx(0.0194722222222)
    assert float(estimated.standard_error) == pytest.approx(0.00474271696368)
    assert float(estimated.df) == pytest.approx(4.98671598322)


def test_the_interval_of_ragged_data_is_close_to_that_of_lmertest() -> None:
    """lmer(y ~ 1 + (1|r)): 0.01972 ± qt(.975, 5.128) 0.004826, by REML and weighted means instead."""
    interval = nested.mean_interval(RAGGED, 0.95)
    assert isinstance(interval, Interval)
    assert interval.low == pytest.approx(1.00729740259)
    assert interval.point == pytest.approx(1.01966304249)
    assert interval.high == pytest.approx(1.03218048369)
    assert math.log(interval.low) == pytest.approx(0.01972 - 2.553 * 0.004826, abs=4e-4)
    assert math.log(interval.high) == pytest.approx(0.01972 + 2.553 * 0.004826, abs=4e-4)


def test_with_one_block_per_round_the_interval_is_the_ordinary_t_interval() -> None:
    """t.test(c(0.031, 0.018, 0.044, 0.027, 0.012, 0.038)): 0.0157284506519 0.0409382160147."""
    values = [[0.031], [0.018], [0.044], [0.027], [0.012], [0.038]]
    interval = nested.mean_interval(values, 0.95)
    assert isinstance(interval, Interval)
    assert math.log(interval.low) == pytest.approx(0.0157284506519)
    assert math.log(interval.high) == pytest.approx(0.0409382160147)
    assert float(nested.p_value(nested.estimate(Sample.of(values)))) == pytest.approx(0.00218369207)


def test_more_blocks_in_a_round_do_not_hide_the_bias_of_started_instances() -> None:
    """Six rounds a hundred times measured still are six: the interval keeps the width that six means have."""
    rounds = [0.031, 0.018, 0.044, 0.027, 0.012, 0.038]
    once, often = (nested.mean_interval([[mean] * count for mean in rounds], 0.95) for count in (1, 100))
    assert isinstance(once, Interval)
    assert isinstance(often, Interval)
    assert often.low == pytest.approx(once.low)
    assert often.high == pytest.approx(once.high)


@pytest.mark.parametrize(
    ("log_ratios", "reason"),
    [
        ([], "only 0 of at least 4 blocks were measured"),
        ([[0.1], [0.2], [0.3]], "only 3 of at least 4 blocks were measured"),
        (
            [[0.1, 0.2, 0.3, 0.4]],
            "the servers were started only once, so the bias of started instances is unknown",
        ),
        ([[0.5, 0.5], [0.5, 0.5]], "all rounds gave exactly the same ratio, so the noise is unknown"),
    ],
)
def test_too_little_data_gives_no_interval_but_a_reason(log_ratios: list[list[float]], reason: str) -> None:
    assert nested.mean_interval(log_ratios, 0.95) == Unknown(reason)


def test_with_one_block_per_round_all_variance_is_given_to_rounds() -> None:
    """sd(c(0.01, 0.03, 0.02, 0.04)) is 0.0129099."""
    between, within = nested.anova_components(Sample.of([[0.01], [0.03], [0.02], [0.04]]))
    assert math.sqrt(float(between)) == pytest.approx(0.01290994, rel=1e-6)
    assert float(within) == 0.0


def test_rounds_that_agree_better_than_their_blocks_have_no_variance_of_their_own() -> None:
    between, _ = nested.anova_components(Sample.of([[-1.0, 1.1], [1.0, -1.0], [-1.0, 1.0]]))
    assert float(between) == 0.0


def test_many_experiments_at_once_give_what_each_gives_alone() -> None:
    values = np.random.default_rng(5).normal(size=(3, 8))
    counts = np.array([3, 1, 2, 2])
    together = nested.estimate(Sample(values, counts))
    for index in range(3):
        alone = nested.estimate(Sample(values[index], counts))
        assert together.mean[index] == pytest.approx(float(alone.mean))
        assert together.standard_error[index] == pytest.approx(float(alone.standard_error))
        assert together.df[index] == pytest.approx(float(alone.df))


def test_a_bias_of_the_experiment_widens_the_interval_as_welch_and_satterthwaite_do() -> None:
    # Seven rounds with a standard error of s = 1 % and 6 degrees of freedom; a bias of 2 %:
    # s² + b² = 5 · 10⁻⁴, and (5 · 10⁻⁴)² / ((10⁻⁴)² / 6) = 150 degrees of freedom.
    deviations = np.array([-1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5])
    means = deviations / np.std(deviations, ddof=1) * 0.01 * math.sqrt(7)
    plain = nested.estimate(Sample.of([[one] for one in means.tolist()]))
    plain = replace(plain, standard_error=np.asarray(0.01))  # whatever its order in time widened it by
    found = nested.with_bias(plain, 0.02)
    assert float(found.standard_error) == pytest.approx(math.sqrt(5) / 100)
    assert float(found.df) == pytest.approx(25 * float(plain.df))
    assert float(plain.df) == pytest.approx(6)
    assert nested.with_bias(plain, 0.0) is plain


def test_the_interval_is_students() -> None:
    """By hand: mean 3, standard deviation sqrt(2.5), t 2.776445 with four degrees of freedom."""
    found = mean_amount([3.0, 1.0, 5.0, 2.0, 4.0], 0.95)
    assert found.mean == pytest.approx(3.0)
    assert found.low == pytest.approx(3 - 2.776445 * (2.5 / 5) ** 0.5, rel=1e-6)
    assert found.high == pytest.approx(3 + 2.776445 * (2.5 / 5) ** 0.5, rel=1e-6)
    assert found.is_distinguishable


def test_an_interval_with_nothing_in_it_is_told() -> None:
    assert not mean_amount([3.0, -1.0, 5.0, -2.0, 1.0], 0.95).is_distinguishable
    assert mean_amount([-3.0, -3.1, -2.9, -3.05, -2.95], 0.95).is_distinguishable


def test_what_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        mean_amount([1.0, float("nan"), 2.0], 0.95)
