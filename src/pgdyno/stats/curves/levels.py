"""Choose the next levels to measure, to find a factor's knee in few trials. Pure.

First come the lowest and highest levels, and powers of two in between. Then the search bisects the unmeasured
levels between the last one ruled out and the first one as good as the best. Finally, the levels still in
question get more blocks, together with those that may be the best. Unmeasured levels next to the best are
tried as well.

A new level is measured until it has enough blocks for a verdict, one new level at a time: with fewer blocks
it is not informative, and would leave open which level is the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pgdyno.model.experiments.scaling import Level, Scaling

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
