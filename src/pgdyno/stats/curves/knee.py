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

A level recommended by a curve's first rounds, verified with later rounds.

The best of many levels looks better than it is, because of selection bias; rounds that were not used for the
selection do not have this bias. In those, the recommended level is compared with all other measured levels.
It is confirmed if its rate is certainly at least 1 − tolerance of each of them. All comparisons have to hold,
which needs no correction (intersection-union test, Berger 1982, Technometrics 24, 295-300). Levels missing in
later rounds were ruled out by the first ones.

Choose the next levels to measure, to find a factor's knee in few trials.

First come the lowest and highest levels, and powers of two in between. Then the search bisects the unmeasured
levels between the last one ruled out and the first one as good as the best. Finally, the levels still in
question get more blocks, together with those that may be the best. Unmeasured levels next to the best are
tried as well.

A new level is measured until it has enough blocks for a verdict, one new level at a time: with fewer blocks
it is not informative, and would leave open which level is the best.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pgdyno.model.experiments.scaling import Confirmation, Dip, Knee, Level, Scaling
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


ENOUGH = 5  # blocks per level, as for a verdict (decision 4)
_FEW = 6  # up to so many levels, all are measured from the beginning


def first_levels(candidates: Sequence[int]) -> tuple[int, ...]:
    """Return the first levels: the lowest, the highest, and levels in between that double the previous one.

    ``candidates`` are in ascending order, and not empty.
    """
    if len(candidates) <= _FEW:
        return tuple(candidates)
    chosen = [candidates[0]]
    for level in candidates:
        if level >= 2 * max(1, chosen[-1]):
            chosen.append(level)
    return tuple(dict.fromkeys([*chosen, candidates[-1]]))


def next_levels(candidates: Sequence[int], found: Scaling, blocks_left: int) -> tuple[int, ...]:
    """Return the levels of the next block, in ascending order; none once the knee is a single level.

    Then the next lower level has been measured and ruled out. ``blocks_left`` is the number of blocks for
    which there is time: with too few for another level, none is begun.
    """
    measured = {one.level for one in found.levels}
    unfinished = {one.level for one in found.levels if one.blocks < ENOUGH or not _is_compared(one)}
    lowest, highest = _around_the_knee(candidates, found)
    unmeasured = [level for level in candidates if lowest < level < highest and level not in measured]
    if not unmeasured:  # the true best may be next to the apparent one
        lowest = max((level for level in measured if level < found.best), default=found.best)
        highest = min((level for level in measured if level > found.best), default=found.best)
        unmeasured = [level for level in candidates if lowest < level < highest and level not in measured]
    in_question = {
        one.level
        for one in found.levels
        if found.knee.low <= one.level <= highest or one.ratio_to_best.high >= 1  # it may be the best
    }
    has_time = blocks_left >= ENOUGH and all(one.blocks >= ENOUGH for one in found.levels)
    if unmeasured and has_time:
        return tuple(sorted({*in_question, *unfinished, _middle(unmeasured, lowest, highest)}))
    is_found = found.knee.low == found.knee.high and not unfinished
    return () if is_found else tuple(sorted(in_question | unfinished))


def _around_the_knee(candidates: Sequence[int], found: Scaling) -> tuple[int, int]:
    """Return the last level ruled out, and the first certainly as good as the best, else the best."""
    below = (one.level for one in found.levels if one.level < found.knee.low)
    return max(below, default=candidates[0]), found.best if found.knee.high is None else found.knee.high


def _is_compared(one: Level) -> bool:
    """Whether a level has enough blocks in common with the best level."""
    return math.isfinite(one.ratio_to_best.high)


def _middle(unmeasured: Sequence[int], lowest: int, highest: int) -> int:
    """Return the level closest to the geometric mean of the ends."""
    wanted = math.sqrt(max(1, lowest) * highest)
    return min(unmeasured, key=lambda level: abs(math.log(level / wanted)))
