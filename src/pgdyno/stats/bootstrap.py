"""BCa bootstrap over rounds: a robustness check that does not assume normal noise.

    symbol  meaning                                                          shape     unit
    m_r     mean log-ratio of round r                                        (R,)      1
    θ̂, θ*   mean of the m_r; means of resampled m_r                          (), (B,)  1
    z₀      bias correction: Φ⁻¹ of the share of θ* below θ̂                  ()        1
    a       acceleration: skewness of the jackknife over rounds / 6          ()        1

Only the top level is resampled, whole rounds with their blocks: also resampling blocks within rounds would
count their noise twice (Davison, Hinkley 1997, Bootstrap Methods, §3.8). With few rounds the bootstrap
interval is too narrow; therefore it only checks the t interval and never replaces it.

Source: Efron (1987), Better Bootstrap Confidence Intervals, J. of the American Statistical Association 82,
171-185.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from pgdyno.model.experiments.verdict import Interval
from pgdyno.stats.sample import FloatArray

RESAMPLES = 10_000


def bca_interval(round_means: FloatArray, level: float, *, seed: int = 1) -> Interval:
    """Return the BCa interval of the ratio variant/baseline.

    Shapes: round_means (R,), R ≥ 3 and not all equal.
    """
    mean = round_means.mean()
    rounds = len(round_means)
    random = np.random.default_rng(seed)
    resampled = np.sort(round_means[random.integers(rounds, size=(RESAMPLES, rounds))].mean(axis=-1))
    # Ties with the estimate count half: they are common with few rounds.
    below = (np.searchsorted(resampled, mean, "left") + np.searchsorted(resampled, mean, "right")) / 2
    z0 = special.ndtri(below / RESAMPLES)
    z = special.ndtri(np.array([(1 - level) / 2, (1 + level) / 2]))
    shares = special.ndtr(z0 + (z0 + z) / (1 - acceleration(round_means) * (z0 + z)))
    low, high = np.exp(np.quantile(resampled, shares))
    return Interval(float(low), float(np.exp(mean)), float(high), level)


def acceleration(round_means: FloatArray) -> float:
    """Return a = Σ d³ / (6 (Σ d²)^1.5), d = the change of the mean without a round (jackknife)."""
    influence = round_means - round_means.mean()  # proportional to the jackknife's; a is scale-free
    return float((influence**3).sum() / (6 * (influence**2).sum() ** 1.5))
