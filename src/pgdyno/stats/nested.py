"""The mean log-ratio of nested data and its t interval: blocks nested in rounds.

    symbol  meaning                                                          shape     unit
    y_rb    log-ratio of block b in round r:  y_rb = μ + a_r + e_rb          (…, N)    1
    σ_A²    variance of a_r, the bias of the instances started for round r   (…)       1
    σ_E²    variance of e_rb, the noise of a block                           (…)       1
    m_r     mean of round r, with variance v_r = σ_A² + σ_E² / n_r           (…, R)    1
    S²      sample variance of the m_r; unbiased for the mean of the v_r     (…)       1
    ν       degrees of freedom of S² (Satterthwaite)                         (…)       1
    f       inflation by autocorrelation between rounds, 1 if none           (…)       1
    b       standard deviation of a bias of the whole experiment             ()        1

The estimate of μ is the plain mean of the round means, μ̂ = Σ m_r / R, with standard error S/√R: the method
of unweighted means, exact if all rounds have the same number of blocks, and a good approximation if some
blocks are void. It never pools the two levels, so the interval includes a bias of started instances whether
or not it is evident.

Start reading at ``estimate``. At least 4 blocks and 2 rounds are needed: see ``missing``.
Sources: Searle, Casella, McCulloch (1992), Variance Components, ch. 3; Thomas, Hultquist (1978), Annals of
Statistics 6, 582-587 (unweighted means); Satterthwaite (1946), Biometrics Bulletin 2, 110-114.

The mean of a quantity with one value per round, and its t interval.

It is for differences, which can be negative. The method is that of log-ratios, including
autocorrelation between rounds, but without the logarithm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from pgdyno.base.facts import Unknown
from pgdyno.model.experiments.verdict import Interval
from pgdyno.stats.sample import FloatArray, Sample, autocorrelation_between_rounds, variance_inflation

MINIMUM_BLOCKS = 4
MINIMUM_ROUNDS = 2
_MOST_DF = 1e6  # practically infinite; scipy's noncentral t does not accept infinity
RESOLUTION = 1e-12  # the precision of a log-ratio of doubles: a smaller spread counts as none


@dataclass(frozen=True)
class MeanEstimate:
    """μ̂ with the inputs of its interval. Shapes: all (…), one per experiment.

    ``standard_error`` includes the widening by autocorrelation; ``widening`` is that factor, 1 = none.
    """

    rounds: int
    mean: FloatArray
    standard_error: FloatArray
    df: FloatArray
    autocorrelation: FloatArray
    widening: FloatArray

    def t_against(self, null: float) -> FloatArray:
        """Return the t statistic against the log-ratio ``null``."""
        return (self.mean - null) / self.standard_error


def with_bias(estimated: MeanEstimate, bias: float | FloatArray) -> MeanEstimate:
    """Return the estimate with a bias of the whole experiment included in its standard error: √(s² + b²).

    More rounds neither reveal nor reduce such a bias; ``bias`` is its standard deviation, known from other
    experiments. Degrees of freedom are Welch's and Satterthwaite's, infinitely many for b².
    """
    if not np.any(bias):
        return estimated
    variance = np.maximum(np.square(estimated.standard_error), np.finfo(np.float64).tiny)
    total = variance + np.square(bias)
    df = np.minimum(estimated.df * np.square(total / variance), _MOST_DF)
    return replace(estimated, standard_error=np.sqrt(total), df=np.asarray(df))


def missing(sample: Sample) -> Unknown | None:
    """Return why no interval can be computed; None if one can."""
    if sample.blocks < MINIMUM_BLOCKS:
        return Unknown(f"only {sample.blocks} of at least {MINIMUM_BLOCKS} blocks were measured")
    if sample.rounds < MINIMUM_ROUNDS:
        return Unknown("the servers were started only once, so the bias of started instances is unknown")
    if np.ptp(sample.round_means) < RESOLUTION:
        return Unknown("all rounds gave exactly the same ratio, so the noise is unknown")
    return None


def anova_components(sample: Sample) -> tuple[FloatArray, FloatArray]:
    """Return σ_A² and σ_E² by the ANOVA method (Henderson's method 1); a negative σ_A² becomes 0.

    With one block per round only their sum can be estimated; it is returned as σ_A², with σ_E² = 0.
    Shapes: (…), (…). Source: Searle, Casella, McCulloch (1992), ch. 3, unbalanced data.
    """
    counts, rounds, blocks = sample.counts, sample.rounds, sample.blocks
    if blocks == rounds:
        total = np.asarray(np.var(sample.values, axis=-1, ddof=1))
        return total, np.zeros_like(total)
    grand_mean = sample.values.mean(axis=-1, keepdims=True)
    mean_square_within = (sample.deviations_within**2).sum(axis=-1) / (blocks - rounds)
    mean_square_between = (counts * (sample.round_means - grand_mean) ** 2).sum(axis=-1) / (rounds - 1)
    blocks_per_round = (blocks - (counts**2).sum() / blocks) / (rounds - 1)
    between = np.maximum(0.0, (mean_square_between - mean_square_within) / blocks_per_round)
    return between, mean_square_within


def satterthwaite_df(round_variances: FloatArray) -> FloatArray:
    """Return ν of the sample variance of independent normal values with unequal variances v_r.

    ν = 2 E[S²]² / Var S² = tr(MV)² / tr(MVMV) with M = (I - J/R)/(R - 1) and V = diag(v_r); R - 1 if all are
    equal. Shapes: (…, R) → (…).
    """
    rounds = round_variances.shape[-1]
    mean = round_variances.mean(axis=-1)
    squares = (round_variances**2).sum(axis=-1)
    products = round_variances.sum(axis=-1) ** 2 - squares
    variance = ((1 - 1 / rounds) ** 2 * squares + products / rounds**2) / (rounds - 1) ** 2
    return np.asarray(np.divide(mean**2, variance, out=np.full_like(mean, rounds - 1.0), where=variance > 0))


def estimate(sample: Sample) -> MeanEstimate:
    """Return μ̂, its standard error and degrees of freedom.

    Under autocorrelation the variance of the mean is f times S²/R. S² is then also too small, and there are
    fewer degrees of freedom. These two effects are deliberately not corrected: few rounds determine f so
    poorly that the corrections made one interval in six of independent rounds useless, for 1 % more coverage
    of dependent ones.
    Source: Bayley, Hammersley (1946), Supplement to the J. of the Royal Statistical Society 8, 184-197.
    """
    means, rounds = sample.round_means, sample.rounds
    between, within = anova_components(sample)
    rho = autocorrelation_between_rounds(means)
    widening = np.sqrt(variance_inflation(rho, rounds))
    return MeanEstimate(
        rounds=rounds,
        mean=means.mean(axis=-1),
        standard_error=np.std(means, axis=-1, ddof=1) / math.sqrt(rounds) * widening,
        df=satterthwaite_df(between[..., None] + within[..., None] / sample.counts),
        autocorrelation=rho,
        widening=widening,
    )


def critical_t(estimated: MeanEstimate, level: float) -> FloatArray:
    """Return the two-sided critical value of Student's t."""
    return np.asarray(special.stdtrit(estimated.df, (1 + level) / 2))


def p_value(estimated: MeanEstimate, null: float = 0.0) -> FloatArray:
    """Return the two-sided p-value against the log-ratio ``null``."""
    return np.asarray(2 * special.stdtr(estimated.df, -np.abs(estimated.t_against(null))))


def one_sided_p(estimated: MeanEstimate, null: float) -> FloatArray:
    """Return the p-value against a true log-ratio of ``null`` or less."""
    return np.asarray(special.stdtr(estimated.df, -estimated.t_against(null)))


def mean_interval(
    log_ratios: Sequence[Sequence[float]], level: float, *, bias: float = 0.0
) -> Interval | Unknown:
    """Return the t interval of the ratio variant/baseline, for numbers of rounds and blocks fixed beforehand.

    ``bias`` is that of ``with_bias``.
    """
    sample = Sample.of(log_ratios)
    if reason := missing(sample):
        return reason
    estimated = with_bias(estimate(sample), bias)
    return ratio_interval(estimated, float(critical_t(estimated, level)), level)


def ratio_interval(estimated: MeanEstimate, critical: float, level: float) -> Interval:
    """Return exp(μ̂ ± critical × standard error) of one experiment."""
    mean, half_width = float(estimated.mean), critical * float(estimated.standard_error)
    with np.errstate(over="ignore"):  # extreme noise gives an infinite upper end
        low, point, high = np.exp([mean - half_width, mean, mean + half_width])
    return Interval(float(low), float(point), float(high), level)


@dataclass(frozen=True)
class Amount:
    """A mean over rounds and the ends of its interval, in the unit of the quantity."""

    low: float
    mean: float
    high: float
    level: float

    @property
    def is_distinguishable(self) -> bool:
        """Whether it differs from zero."""
        return self.low > 0 or self.high < 0


def mean_amount(rounds: Sequence[float], level: float) -> Amount:
    """Return the mean over at least two rounds. Raises: ValueError for a value that is not finite."""
    estimated = estimate(Sample.of([[amount] for amount in rounds]))
    mean = float(estimated.mean)
    reach = float(critical_t(estimated, level) * estimated.standard_error)
    return Amount(mean - reach, mean, mean + reach, level)
