"""The product of separately measured ratios: the total effect of a chain of steps.

    symbol  meaning                                                          shape     unit
    μ̂_i     mean log-ratio of step i                                         (…)       1
    s_i     its standard error                                               (…)       1
    ν_i     its degrees of freedom                                           (…)       1

If step i takes a server from configuration i - 1 to i, the ratio of the last to the first is the product of
the steps' ratios, and its logarithm their sum: μ̂ = Σ μ̂_i. Each step was measured on other servers and at
other times, so the errors are independent and the variances add: s² = Σ s_i². The degrees of freedom of such
a sum are Welch's and Satterthwaite's: ν = s⁴ / Σ (s_i⁴ / ν_i), between the smallest ν_i and Σ ν_i.

Sources: Satterthwaite (1946), Biometrics Bulletin 2, 110-114; Welch (1947), Biometrika 34, 28-35.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgdyno.stats.nested import MeanEstimate


def product_estimate(steps: Sequence[MeanEstimate]) -> MeanEstimate:
    """Return the mean log-ratio of a chain of independent steps.

    Its number of rounds is the smallest of the steps. The steps' standard errors already include the widening
    by autocorrelation.
    """
    variances = np.array([step.standard_error**2 for step in steps])
    degrees = np.array([step.df for step in steps])
    variance = variances.sum(axis=0)
    return MeanEstimate(
        rounds=min(step.rounds for step in steps),
        mean=np.asarray(sum(step.mean for step in steps)),
        standard_error=np.sqrt(variance),
        df=np.asarray(variance**2 / (variances**2 / degrees).sum(axis=0)),
        autocorrelation=np.zeros_like(variance),
        widening=np.ones_like(variance),
    )
