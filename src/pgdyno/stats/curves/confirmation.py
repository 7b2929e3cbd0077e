"""A level recommended by a curve's first rounds, verified with later rounds.

The best of many levels looks better than it is, because of selection bias; rounds that were not used for the
selection do not have this bias. In those, the recommended level is compared with all other measured levels.
It is confirmed if its rate is certainly at least 1 − tolerance of each of them. All comparisons have to hold,
which needs no correction (intersection-union test, Berger 1982, Technometrics 24, 295-300). Levels missing in
later rounds were ruled out by the first ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from pgdyno.model.experiments.scaling import Confirmation
from pgdyno.model.experiments.verdict import Interval
from pgdyno.stats.curves.curve import MINIMUM_BLOCKS, Curve
from pgdyno.stats.curves.knee import LEVEL, TOLERANCE


def confirm(blocks: Sequence[Mapping[int, float]]) -> Confirmation | None:
    """Return the level recommended by the first half of blocks, tested with the second half.

    ``blocks`` are rates by level. The recommended level is the smallest with a mean of at least 1 − TOLERANCE
    of the highest. None: too few blocks, or a level is missing in too many. Raises: ValueError as
    ``Curve.of``.
    """
    first, fresh = blocks[: len(blocks) // 2], blocks[len(blocks) // 2 :]
    if len(first) < MINIMUM_BLOCKS:
        return None
    explored, tried = Curve.of(first).compared, Curve.of(fresh)
    is_enough = explored.means >= explored.means.max() + math.log1p(-TOLERANCE)
    recommended = int(explored.levels[np.argmax(is_enough)])
    if recommended not in tried.levels:
        return None
    at = int(np.searchsorted(tried.levels, recommended))
    low, high = tried.bounds(1 - LEVEL)
    compared = [one for one in range(len(tried.levels)) if one != at and math.isfinite(low[at, one])]
    highest = int(explored.levels[np.argmax(explored.means)])
    if not compared or highest not in (recommended, *(int(tried.levels[one]) for one in compared)):
        return None
    closest = min(compared, key=lambda one: float(low[at, one]))
    ends = (low[at, closest], tried.differences[at, closest], high[at, closest])
    lower, middle, upper = map(math.exp, ends)
    ratio = Interval(lower, middle, upper, LEVEL)
    return Confirmation(
        recommended,
        int(tried.levels[closest]),
        ratio,
        len(fresh),
        is_confirmed=ratio.low >= 1 - TOLERANCE,
    )
