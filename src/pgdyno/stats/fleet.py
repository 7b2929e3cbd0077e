"""One effect on several machines: a random-effects model for few machines with few rounds each.

    symbol  meaning                                                          shape     unit
    k       machines                                                         ()        1
    y_i     mean log-ratio of machine i:  y_i = μ + b_i + e_i                (…, k)    1
    τ²      variance of the b_i, the differences between machines            (…)       1
    s_i²    squared standard error of y_i, an estimate of σ_i² with ν_i      (…, k)    1
            degrees of freedom
    S²      sample variance of the y_i: its expectation is τ² + mean σ_i²    (…)       1
    V       the larger of S² and mean s_i²: machines that agree better       (…)       1
            than their standard errors do so by chance
    d_A, d_D   degrees of freedom of S² and of τ² + mean s_i² (Satterthwaite)   (…)    1

Every machine has the same weight, regardless of its precision:

    μ:  ȳ ± t(k-1) √(V/k)             prediction for another machine:  ȳ ± t(k-1) √(V (1 + 1/k))
    τ²: all values for which S² / (τ² + mean s_i²) lies between the quantiles of F(d_A, d_D)

The interval of μ is valid for any σ_i: with S² in place of V it is Student's, which is conservative for
independent normal values with unequal variances, at levels of 5 % and below. The textbook weights
1/(τ² + s_i²) would need the σ_i². With the s_i² of six rounds, 95 % intervals by Hartung, Knapp, Sidik and
Jonkman cover in 90 to 95 % of simulated fleets, the Q-profile interval of τ in only 58 % of some (decision
48).

Sources: Bakirov, Székely (2005), Zapiski Nauchnykh Seminarov POMI 328, 5-19, and Ibragimov, Müller (2010),
J. of Business & Economic Statistics 28, 453-468 (unequal variances); Hedges (1983), Psychological Bulletin
93, 388-395 (τ² without weights); Williams (1962), Biometrika 49, 278-281 (F interval of a variance
component); Satterthwaite (1946), Biometrics Bulletin 2, 110-114; Röver, Knapp, Friede (2015), BMC
Medical Research Methodology 15:99 (V); Birge (1932), Physical Review 40, 207-227.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from pgdyno.stats.nested import MeanEstimate, satterthwaite_df
from pgdyno.stats.sample import FloatArray

_HALVINGS = 60  # of a bracket in the logarithm of a variance: to double precision
_WIDEST = 1e12  # times S²: above the upper end with one degree of freedom at 99.9999 %


@dataclass(frozen=True)
class EffectsApart:
    """Separately measured effects, of machines or of one machine's experiments. Shapes: all (…, k)."""

    means: FloatArray
    variances: FloatArray
    df: FloatArray

    @classmethod
    def of(cls, estimates: Sequence[MeanEstimate]) -> EffectsApart:
        """Return the effects with these estimates, in the same order."""
        return cls(
            means=np.stack([one.mean for one in estimates], axis=-1),
            variances=np.stack([one.standard_error**2 for one in estimates], axis=-1),
            df=np.stack([one.df for one in estimates], axis=-1),
        )

    @property
    def count(self) -> int:
        """Number of effects, k."""
        return int(self.means.shape[-1])

    @property
    def spread(self) -> FloatArray:
        """Sample variance of the means, S²."""
        return np.asarray(np.var(self.means, axis=-1, ddof=1))

    @property
    def noise(self) -> FloatArray:
        """Mean of the variances."""
        return np.asarray(self.variances.mean(axis=-1))

    @property
    def spread_or_noise(self) -> FloatArray:
        """Larger of the two, V."""
        return np.maximum(self.spread, self.noise)


def across(effects: EffectsApart) -> MeanEstimate:
    """Return μ̂ of two or more machines, each counted as one round."""
    df = np.full(effects.means.shape[:-1], effects.count - 1.0)
    return _estimate(effects, effects.spread_or_noise / effects.count, df)


def repeated(effects: EffectsApart) -> MeanEstimate:
    """Return the mean of one machine's experiments, at least two; each counts as one round.

    If they differ by more than their standard errors explain, the standard error is increased accordingly
    (Birge's ratio), with k - 1 degrees of freedom; otherwise it follows from those of the experiments. Two
    experiments with different true effects may agree by chance: the 95 % interval covers in at least 89 % of
    cases (bench/fleets.py). Numbers of rounds were fixed beforehand.
    """
    count, sums = effects.count, effects.variances.sum(axis=-1)
    own = sums**2 / (effects.variances**2 / effects.df).sum(axis=-1)
    df = np.where(effects.spread > effects.noise, np.minimum(own, count - 1.0), own)
    return _estimate(effects, effects.spread_or_noise / count, df)


def _estimate(effects: EffectsApart, variance: FloatArray, df: FloatArray) -> MeanEstimate:
    return MeanEstimate(
        rounds=effects.count,
        mean=effects.means.mean(axis=-1),
        standard_error=np.sqrt(variance),
        df=df,
        autocorrelation=np.zeros_like(variance),
        widening=np.ones_like(variance),
    )


def predicted_reach(effects: EffectsApart, level: float) -> FloatArray:
    """Return the largest distance from μ̂ of another machine's measurement, with probability ``level``.

    This is for an experiment of the same precision; the machine's true effect is closer. Shapes: (…).
    """
    count = effects.count
    critical = special.stdtrit(count - 1, (1 + level) / 2)
    return np.asarray(critical * np.sqrt(effects.spread_or_noise * (1 + 1 / count)))


def between_variance(effects: EffectsApart) -> FloatArray:
    """Return the estimate of τ²: S² minus the mean of the s_i², at least 0. Shapes: (…)."""
    return np.asarray(np.maximum(0.0, effects.spread - effects.noise))


def between_interval(effects: EffectsApart, level: float) -> tuple[FloatArray, FloatArray]:
    """Return both ends of the interval of τ². Shapes: (…), (…)."""

    def excess(share: float) -> Callable[[FloatArray], FloatArray]:
        return lambda total: _spread_probability(effects, total) - share

    shares = ((1 + level) / 2, (1 - level) / 2)
    low, high = (_falls_below(excess(share), effects.noise, effects.spread) for share in shares)
    return np.maximum(0.0, low - effects.noise), np.maximum(0.0, high - effects.noise)


def _spread_probability(effects: EffectsApart, total: FloatArray) -> FloatArray:
    """Return the probability of a spread up to S², given ``total`` = τ² + mean s_i²."""
    count = effects.count
    of_total = total**2 * count**2 / (effects.variances**2 / effects.df).sum(axis=-1)
    of_spread = satterthwaite_df((total - effects.noise)[..., None] + effects.variances)
    return np.asarray(special.fdtr(of_spread, of_total, effects.spread / total))


def _falls_below(
    excess: Callable[[FloatArray], FloatArray], low: FloatArray, spread: FloatArray
) -> FloatArray:
    """Return the smallest variance, at least ``low``, at which a decreasing function is not above 0."""
    ends = np.log(low), np.log(np.maximum(low, spread) * _WIDEST)
    for _ in range(_HALVINGS):
        middle = (ends[0] + ends[1]) / 2
        is_above = excess(np.exp(middle)) > 0
        ends = np.where(is_above, middle, ends[0]), np.where(is_above, ends[1], middle)
    return np.where(excess(low) > 0, np.exp(ends[1]), low)
