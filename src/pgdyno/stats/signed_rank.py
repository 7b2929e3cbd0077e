"""Wilcoxon's signed-rank test over rounds.

A robustness check that only assumes symmetric noise.

Source: Wilcoxon (1945), Biometrics Bulletin 1, 80-83; exact null distribution up to 50 rounds without ties.
"""

from __future__ import annotations

from scipy import stats

from pgdyno.stats.sample import FloatArray


def signed_rank_p_value(round_means: FloatArray) -> float:
    """Return the two-sided p-value against no change; rounds without any change are left out.

    Shapes: (R,), not all zero.
    """
    return float(stats.wilcoxon(round_means).pvalue)
