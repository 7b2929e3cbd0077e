"""The knee of a curve: the smallest level as good as the best, and its uncertainty.

The best level is only estimated. Therefore every level is compared with every other one (Hsu's multiple
comparisons with the best), each pair by its own t interval:

    certainly as good     its ratio to each level that may be the best is at least 1 − tolerance. All of
                          these have to hold, which needs no correction (intersection-union test, Berger
                          1982); selecting the smallest of such levels does (Bonferroni, by the number of
                          levels).
    certainly not         its ratio to some other level is less. One of these suffices, so all are corrected
                          for their number (Bonferroni).

The knee lies between the smallest level not ruled out and the smallest that is certain. The curve gets
*worse* from a level on if that level and all above it are below the best, corrected for all pairs.

Sources: Hsu (1984), Constrained Simultaneous Confidence Intervals for Multiple Comparisons with the Best,
Annals of Statistics 12, 1136-1144; Berger (1982), Technometrics 24, 295-300.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from pgdyno.model.experiments.scaling import Dip, Knee, Level
from pgdyno.model.experiments.verdict import Interval
from pgdyno.stats.curves.curve import MINIMUM_BLOCKS, Curve
from pgdyno.stats.sample import BoolArray

TOLERANCE = 0.05  # of the highest rate: a smaller gain does not justify more workers
LEVEL = 0.95


def best(curve: Curve) -> int:
    """Return the index of the level with the highest mean."""
    return int(np.argmax(curve.means))


def find_knee(curve: Curve, *, tolerance: float = TOLERANCE, level: float = LEVEL) -> Knee:
    """Return the smallest level that is as good as the best, or the range in which it lies."""
    limit = math.log1p(-tolerance)
    low, _ = curve.bounds((1 - level) / len(curve.levels))
    # A level that beats these beats all, including those with which it shares no block.
    may_be_best = ~_is_below(curve, 0.0, level)
    may_be_best |= not may_be_best.any()
    is_sure = low[:, may_be_best].min(axis=1) >= limit
    is_possible = ~_is_below(curve, limit, level)
    # If blocks lack levels, pairs come from different blocks, and each level may be below another one.
    is_possible[best(curve)] = True
    possible = [int(one) for one in curve.levels[is_possible]]
    sure = [int(one) for one in curve.levels[is_sure]]
    return Knee(possible[0], sure[0] if sure else None, tolerance)


def worse_from(curve: Curve, *, level: float = LEVEL) -> int | None:
    """Return the level above the best from which on all are certainly worse than the best; None if none."""
    top = best(curve)
    _, high = curve.bounds(_tail_per_pair(curve, level))
    found = None
    for one in range(len(curve.levels) - 1, top, -1):
        if high[one, top] >= 0:
            break
        found = int(curve.levels[one])
    return found


def find_dips(curve: Curve, *, level: float = LEVEL) -> tuple[Dip, ...]:
    """Return the dips of the curve, one per lower level, with the highest levels on both sides of it."""
    low, _ = curve.bounds(_tail_per_pair(curve, level))
    is_higher = low > 0  # [i, j]: level i is higher than level j
    return tuple(_dips(curve, is_higher))


def describe(curve: Curve, best_level: int, *, offset: int = 0, level: float = LEVEL) -> tuple[Level, ...]:
    """Return every level with its ratio to the best and its efficiency, with two-sided intervals.

    ``offset``: the number of processes at level 0.
    """
    low, high = curve.bounds((1 - level) / 2)
    top = int(np.searchsorted(curve.levels, best_level))

    def ratio(one: int, other: int, expected: float) -> Interval:
        ends = (low[one, other], curve.differences[one, other], high[one, other])
        lowest, middle, highest = (math.exp(end) / expected for end in ends)
        return Interval(lowest, middle, highest, level)

    def efficiency(one: int) -> Interval | None:
        if curve.counts[one, 0] < MINIMUM_BLOCKS or curve.levels[0] + offset <= 0:
            return None
        return ratio(one, 0, float((curve.levels[one] + offset) / (curve.levels[0] + offset)))

    return tuple(
        Level(
            level=int(curve.levels[one]),
            blocks=int(curve.counts[one, one]),
            rate=math.exp(curve.means[one]),
            ratio_to_best=ratio(one, top, 1.0),
            efficiency=efficiency(one),
        )
        for one in range(len(curve.levels))
    )


def _tail_per_pair(curve: Curve, level: float) -> float:
    """Return the tail probability per comparison if all pairs are compared, in both directions."""
    return (1 - level) / (len(curve.levels) * (len(curve.levels) - 1))


def _is_below(curve: Curve, limit: float, level: float) -> BoolArray:
    """Whether a level's ratio to some other level is certainly below a limit. Shapes: (L,)."""
    _, high = curve.bounds((1 - level) / (len(curve.levels) - 1))
    return np.asarray((high < limit).any(axis=1))


def _dips(curve: Curve, is_higher: BoolArray) -> Iterator[Dip]:
    levels = curve.levels
    for at in range(1, len(levels) - 1):
        before = [one for one in range(at) if is_higher[one, at]]
        after = [one for one in range(at + 1, len(levels)) if is_higher[one, at]]
        around = max(
            itertools.product(before, after), key=lambda pair: curve.means[[*pair]].sum(), default=None
        )
        if around is not None:
            yield Dip(int(levels[around[0]]), int(levels[at]), int(levels[around[1]]))
