"""Robustness checks and diagnostics shown with a verdict, in words. They never affect the decision.

Source of the signed-rank test, which only assumes symmetric noise: Wilcoxon (1945), Biometrics Bulletin 1,
80-83; exact null distribution up to 50 rounds without ties.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pgdyno.stats import autocorrelation, wording
from pgdyno.stats.bootstrap import bca_interval
from pgdyno.stats.inference import MINIMUM_ROUNDS_FOR_VERDICT, Inference
from pgdyno.stats.sample import FloatArray, Sample

_MOST_EXACT = 50  # rounds
CHECKS_FROM_BLOCKS = 20  # with fewer, neither the bootstrap nor ranks are informative


def robustness_checks(sample: Sample, inference: Inference, level: float) -> Mapping[str, str]:
    """Return the results of robustness checks and diagnostics, by name."""
    checks: dict[str, str] = {}
    if sample.blocks >= CHECKS_FROM_BLOCKS and sample.rounds >= MINIMUM_ROUNDS_FOR_VERDICT:
        checks.update(_second_opinions(sample, level, is_changed=bool(inference.p_value <= 1 - level)))
    widening = float(inference.estimate.widening)
    if widening > 1:
        rho = float(inference.estimate.autocorrelation)
        checks["autocorrelation between rounds"] = f"{rho:.2f}: the interval is {widening:.1f} times wider"
    within = autocorrelation.within_rounds(sample)
    if within is not None:
        checks["autocorrelation within rounds"] = f"{float(within):.2f}: part of the spread between rounds"
    return checks


def _second_opinions(sample: Sample, level: float, *, is_changed: bool) -> Mapping[str, str]:
    """Return whether bootstrap and ranks agree with the interval on whether there is a change."""
    bca = bca_interval(sample.round_means, level)
    is_excluded = bca.low > 1 or bca.high < 1
    ranked = signed_rank_p_value(sample.round_means)
    return {
        "BCa bootstrap": wording.agreement(agrees=is_excluded is is_changed, figures=wording.interval(bca)),
        "signed rank": wording.agreement(
            agrees=(ranked <= 1 - level) is is_changed, figures=wording.p_value(ranked)
        ),
    }


def signed_rank_p_value(round_means: FloatArray) -> float:
    """Return the two-sided p-value against no change; rounds without any change are left out.

    Shapes: (R,), not all zero.
    """
    sizes = np.unique(np.abs(round_means))
    if sizes.size < round_means.size or sizes.size > _MOST_EXACT or sizes[0] == 0:
        # Importing it takes a second, more than all other imports of a command; only rare cases need it.
        from scipy import stats

        return float(stats.wilcoxon(round_means).pvalue)
    positive = int(np.sum(np.searchsorted(sizes, round_means[round_means > 0]) + 1))
    share = _null_distribution(sizes.size)
    return min(1.0, 2 * float(min(share[: positive + 1].sum(), share[positive:].sum())))


def _null_distribution(rounds: int) -> FloatArray:
    """Return the probability of every sum of positive ranks, from 0 on, if both signs are equally likely."""
    share = np.ones(1)
    for rank in range(1, rounds + 1):
        share = (np.pad(share, (0, rank)) + np.pad(share, (rank, 0))) / 2
    return share
