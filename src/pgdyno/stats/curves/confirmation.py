"""A level recommended by a curve's first rounds, verified against later rounds.

What looks best among many levels looks better than it is, because luck chose along; rounds that had no part
in the choice do not. In those, the recommended level is compared with every other one that they have: it is
confirmed if its rate is at least 1 − tolerance of each of them for sure. All comparisons have to hold, which
needs no correction (intersection-union test, Berger 1982, Technometrics 24, 295-300). Levels that later
rounds left out were ruled out by the first ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from pgdyno.model.experiments.scaling import Confirmation
from pgdyno.model.experiments.verdict import Interval
from pgdyno.stats.curves import knee
from pgdyno.stats.curves.curve import MINIMUM_BLOCKS, Curve


def confirm(
    blocks: Sequence[Mapping[int, float]], *, tolerance: float = knee.TOLERANCE, level: float = knee.LEVEL
) -> Confirmation | None:
    """Return the level recommended by the first half of blocks.

    It comes with the findings of the second half.

    ``blocks`` are rates by level. It is the smallest level with a mean of at least 1 − tolerance of the
    highest. None: too few blocks, or a level is missing in too many. Raises: ValueError as ``Curve.of``.
    """
    first, fresh = blocks[: len(blocks) // 2], blocks[len(blocks) // 2 :]
    if len(first) < MINIMUM_BLOCKS:
        return None
    explored, tried = Curve.of(first).compared, Curve.of(fresh)
    is_enough = explored.means >= explored.means.max() + math.log1p(-tolerance)
    recommended = int(explored.levels[np.argmax(is_enough)])
    if recommended not in tried.levels:
        return None
    at = int(np.searchsorted(tried.levels, recommended))
    low, high = tried.bounds(1 - level)
    compared = [one for one in range(len(tried.levels)) if one != at and math.isfinite(low[at, one])]
    highest = int(explored.levels[np.argmax(explored.means)])
    if not compared or highest not in (recommended, *(int(tried.levels[one]) for one in compared)):
        return None
    closest = min(compared, key=lambda one: float(low[at, one]))
    ends = (low[at, closest], tried.differences[at, closest], high[at, closest])
    lower, middle, upper = map(math.exp, ends)
    ratio = Interval(lower, middle, upper, level)
    return Confirmation(
        recommended,
        int(tried.levels[closest]),
        ratio,
        len(fresh),
        is_confirmed=ratio.low >= 1 - tolerance,
    )
