"""Effects between whole trials, adjusted for a covariate that varies between trials.

    ln y_i = α_round(i) + τ_arm(i) + β₁ s_i + β₂ s_i² + e_i,  τ_baseline = 0

    symbol  meaning                                                          shape     unit
    y       the metric of a trial                                            (n,)      the metric's
    s       the covariate, e.g. the share of CPU time that was stolen        (n,)      1
    X       indicators of rounds and of arms without the baseline, s, s²     (n, p)
    h       leverages, the diagonal of X (X'X)⁻¹ X'                           (n,)      1
    e       residuals                                                        (n,)      1

β is common to all arms. Coefficients are estimated by least squares, with HC3 standard errors: (X'X)⁻¹ X'
diag(e²/(1 - h)²) X (X'X)⁻¹, which remain valid if the noise grows with the covariate; intervals are t with
n - p degrees of freedom. They are conservative: simulated 95 % intervals of 12 to 42 trials cover 98 to 99 %.
Sources: Fisher (1932), Statistical Methods for Research Workers, §49.1 (analysis of covariance); Deng et al.
(2013), WSDM, 123-132 (CUPED); MacKinnon, White (1985), J. of Econometrics 29, 305-325 (HC3); Long, Ervin
(2000), The American Statistician 54, 217-224 (HC3 in small samples).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from pgdyno.base.facts import Unknown
from pgdyno.model.experiments.verdict import Interval
from pgdyno.stats.nested import RESOLUTION
from pgdyno.stats.sample import FloatArray

_WHOLE_LEVERAGE = 1 - 1e-6  # such a trial always lies on the fitted curve: it has no residual


@dataclass(frozen=True)
class Trial:
    """One arm's trial in one round. ``arm`` 0 is the baseline; ``log_value`` is ln of the metric."""

    round: int
    arm: int
    covariate: float
    log_value: float


@dataclass(frozen=True)
class Adjusted:
    """The effect of each arm against the baseline, as ratios; slopes are those of ln y in s and s²."""

    effects: dict[int, Interval]
    slopes: tuple[float, float]
    residual_sd: float
    df: int


def adjust_for_covariate(trials: Sequence[Trial], level: float) -> Adjusted | Unknown:
    """Return the adjusted effects, or the reason for none: no degree of freedom, or no variation."""
    arms = sorted({trial.arm for trial in trials} - {0})
    indicators = _indicators(trials, arms)
    s = np.array([trial.covariate for trial in trials])
    s = s - s.mean()  # decorrelates s and s²; the effects do not depend on it
    x = np.column_stack([indicators, s, s**2])
    y = np.array([trial.log_value for trial in trials])
    df = len(trials) - x.shape[1]
    if df < 1 or np.linalg.matrix_rank(x) < x.shape[1]:
        return Unknown("too few trials to separate the effects of rounds, variants and the covariate")
    inverse = np.linalg.inv(x.T @ x)
    leverage = np.einsum("ij,jk,ik->i", x, inverse, x)
    if leverage.max() > _WHOLE_LEVERAGE:
        return Unknown("a single trial determines a coefficient")
    coefficients = inverse @ x.T @ y
    residuals = y - x @ coefficients
    meat = x.T @ (x * ((residuals / (1 - leverage)) ** 2)[:, None])
    errors = np.sqrt(np.diag(inverse @ meat @ inverse))
    first, critical = indicators.shape[1] - len(arms), float(special.stdtrit(df, (1 + level) / 2))
    return Adjusted(
        effects={
            arm: _interval(float(coefficients[first + i]), critical * float(errors[first + i]), level)
            for i, arm in enumerate(arms)
        },
        slopes=(float(coefficients[-2]), float(coefficients[-1])),
        residual_sd=math.sqrt(float(residuals @ residuals) / df),
        df=df,
    )


def differs_between_arms(trials: Sequence[Trial]) -> float | None:
    """Return the p-value of equal means of the covariate in all arms, adjusted for rounds (F test).

    None with too few trials, or if the covariate is constant.
    """
    arms = sorted({trial.arm for trial in trials} - {0})
    full = _indicators(trials, arms)
    df = len(trials) - full.shape[1]
    s = np.array([trial.covariate for trial in trials])
    if df < 1 or not arms or np.ptp(s) < RESOLUTION:
        return None
    within = _residual_squares(full, s)
    without = _residual_squares(full[:, : full.shape[1] - len(arms)], s)
    f = math.inf if within <= 0 else (without - within) / len(arms) / (within / df)
    return float(special.fdtrc(len(arms), df, f))


def _indicators(trials: Sequence[Trial], arms: Sequence[int]) -> FloatArray:
    """Return one column per round, then one per arm except the baseline. Shape: (n, R + A - 1)."""
    rounds = sorted({trial.round for trial in trials})
    columns = [[trial.round == one for trial in trials] for one in rounds]
    columns += [[trial.arm == one for trial in trials] for one in arms]
    return np.array(columns, dtype=np.float64).T


def _residual_squares(x: FloatArray, y: FloatArray) -> float:
    residuals = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    return float(residuals @ residuals)


def _interval(effect: float, half_width: float, level: float) -> Interval:
    with np.errstate(over="ignore"):
        low, point, high = np.exp([effect - half_width, effect, effect + half_width])
    return Interval(float(low), float(point), float(high), level)
