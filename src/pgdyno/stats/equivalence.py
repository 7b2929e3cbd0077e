"""Equivalence: a difference below a margin has to be shown, not assumed.

Two one-sided tests (TOST) show that the effect lies above the lower margin and below the upper one, each with
error probability α; the larger of the two p-values decides. As ratios the margins are 1/(1 + margin) and
1 + margin: symmetric in the log-ratio, and both within ±margin.

Source: Schuirmann (1987), J. of Pharmacokinetics and Biopharmaceutics 15, 657-680.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Protocol

import numpy as np

from pgdyno.stats.nested import MeanEstimate
from pgdyno.stats.sample import FloatArray


class OneSidedTest(Protocol):
    """A p-value against a true log-ratio of ``null`` or less; ``nested`` and ``anytime`` have one each."""

    def __call__(self, estimated: MeanEstimate, null: float) -> FloatArray:
        """Return the p-value."""


def tost_p_value(estimated: MeanEstimate, margin: float, one_sided_p: OneSidedTest) -> FloatArray:
    """Return TOST's p-value: small if the true ratio is shown to be within ±``margin`` (0.02 = 2 %)."""
    bound = math.log1p(margin)
    mirrored = replace(estimated, mean=-estimated.mean)
    return np.maximum(one_sided_p(estimated, -bound), one_sided_p(mirrored, -bound))
