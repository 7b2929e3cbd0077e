"""Wilcoxon's signed-rank test over rounds: a robustness check that only assumes symmetric noise.

Source: Wilcoxon (1945), Biometrics Bulletin 1, 80-83; exact null distribution up to 50 rounds without ties.
"""

from __future__ import annotations

import numpy as np

from pgdyno.stats.sample import FloatArray

_MOST_EXACT = 50


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
