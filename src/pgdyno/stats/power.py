"""Minimum detectable effect: the smallest change that an experiment finds.

    symbol  meaning                                                          unit
    s       standard error of the mean log-ratio                             1
    ν       its degrees of freedom                                           1
    c       critical value of |t| at which a change counts as found          1
    δ       noncentrality: true log-ratio / s                                1

A change is found if |T| > c, where T has the noncentral t distribution with ν degrees of freedom and
noncentrality δ. The smallest δ that gives the wanted power yields the effect exp(δ s) - 1. Before an
experiment s follows from variance components and the planned numbers; afterwards s is the estimate. The
"after" figure describes the sensitivity of the experiment; it is not evidence about the effect itself. Plans
include an allowance for the widening by autocorrelation, which affects independent rounds by chance.

Source: Johnson, Kotz, Balakrishnan (1995), Continuous Univariate Distributions 2, ch. 31 (noncentral t).
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from pgdyno.model.experiments.verdict import VarianceComponents
from pgdyno.stats.sample import POWER_ALLOWANCE

_HALVINGS = 60
_LARGEST_NONCENTRALITY = 1e6  # an experiment that cannot detect this has no detectable effect


def detectable_noncentrality(df: float, critical: float, power: float) -> float:
    """Return δ with P(|T| > critical) = power; infinite if ``critical`` is."""
    if not math.isfinite(critical):
        return math.inf

    def shortfall(delta: float) -> float:
        found_below = special.nctdtr(df, delta, -critical)
        # scipy returns NaN if the far tail is numerically zero.
        missed = special.nctdtr(df, delta, critical) - (0.0 if math.isnan(found_below) else found_below)
        return float(missed) - (1 - power)

    # Near δ = c half of all changes are found; the noncentral t is wider for smaller ν.
    upper = critical + 2.0
    while shortfall(upper) > 0:
        upper *= 2
        if upper > _LARGEST_NONCENTRALITY:
            return math.inf
    lower = 0.0
    for _ in range(_HALVINGS):  # scipy's root finders take longer to import than this takes
        middle = (lower + upper) / 2
        lower, upper = (middle, upper) if shortfall(middle) > 0 else (lower, middle)
    return upper


def detectable_effect(standard_error: float, df: float, critical: float, power: float) -> float:
    """Return the smallest relative change (0.01 = 1 %) that would be found with probability ``power``."""
    with np.errstate(over="ignore"):
        return float(np.expm1(detectable_noncentrality(df, critical, power) * standard_error))


def planned_standard_error(components: VarianceComponents, rounds: int, blocks_per_round: int) -> float:
    """Return the expected standard error of the mean log-ratio of a plan: √((σ_A² + σ_E²/n) / R)."""
    round_variance = components.between_rounds**2 + components.within_rounds**2 / blocks_per_round
    return math.sqrt(round_variance / rounds)


def minimum_detectable_effect(
    components: VarianceComponents,
    rounds: int,
    blocks_per_round: int,
    *,
    level: float = 0.95,
    power: float = 0.80,
) -> float:
    """Return the smallest relative change that a planned experiment finds with probability ``power``.

    Raises: ValueError for fewer than 2 rounds or 1 block per round: the noise cannot be estimated.
    """
    if rounds < 2 or blocks_per_round < 1:
        raise ValueError(f"no plan: {rounds} rounds of {blocks_per_round} blocks")
    standard_error = planned_standard_error(components, rounds, blocks_per_round)
    critical = float(special.stdtrit(rounds - 1, (1 + level) / 2))
    return detectable_effect(standard_error * POWER_ALLOWANCE, rounds - 1, critical, power)
