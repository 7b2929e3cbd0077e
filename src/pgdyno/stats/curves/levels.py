"""Choose the next levels to measure, to find a factor's knee in few trials. Pure.

At first the ends, and what doubles between them; then, between the last level that is ruled out and the first
that is as good as the best, the middle of what was not measured yet; in the end more blocks of those that are
still in question, beside those that may be the best. Around the best what was not measured is tried too.

A level that was begun is measured until it has as many blocks as a verdict needs, and one after the other:
what was measured less says nothing, and would leave open which level is the best.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pgdyno.model.experiments.scaling import Level, Scaling

ENOUGH = 5  # blocks of a level, as for a verdict (decision 4)
_FEW = 6  # levels, that are all measured from the beginning


def first_levels(candidates: Sequence[int]) -> tuple[int, ...]:
    """Return where to begin: the ends, and between them each level that is twice the one before.

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
    """Return the levels of the next block, in ascending order; none once the knee is one level.

    That needs its neighbour below to be measured as well, and ruled out. ``blocks_left`` are those that there
    is time for: where they are too few for a further level, none is begun.
    """
    measured = {one.level for one in found.levels}
    unfinished = {one.level for one in found.levels if one.blocks < ENOUGH or not _is_compared(one)}
    lowest, highest = _around_the_knee(candidates, found)
    unmeasured = [level for level in candidates if lowest < level < highest and level not in measured]
    if not unmeasured:  # the best may lie beside what seems to be it
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
    """Return the last level that is ruled out, and the first that is as good as the best, or else that."""
    below = (one.level for one in found.levels if one.level < found.knee.low)
    return max(below, default=candidates[0]), found.best if found.knee.high is None else found.knee.high


def _is_compared(one: Level) -> bool:
    """Whether it has enough blocks in common with the best level."""
    return math.isfinite(one.ratio_to_best.high)


def _middle(unmeasured: Sequence[int], lowest: int, highest: int) -> int:
    """Return the level whose ratio to both ends is most alike."""
    wanted = math.sqrt(max(1, lowest) * highest)
    return min(unmeasured, key=lambda level: abs(math.log(level / wanted)))
