"""Which levels of a factor to measure next, so that its knee is found with few trials. Pure.

At first the ends, and what doubles between them; then, between the last level that is ruled out and the first
that is as good as the best, the middle of what was not measured yet; in the end more blocks of those that are
still in question, beside those that may be the best. Around the best what was not measured is tried too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pgdyno.model.scaling import Scaling

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


def next_levels(candidates: Sequence[int], found: Scaling) -> tuple[int, ...]:
    """Return the levels of the next block, in ascending order; none once the knee is one level.

    That needs its neighbour below to be measured as well, and ruled out.
    """
    measured = {one.level for one in found.levels}
    lowest = max((level for level in measured if level < found.knee.low), default=candidates[0])
    highest = found.best if found.knee.high is None else found.knee.high
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
    if unmeasured:
        return tuple(sorted({*in_question, _middle(unmeasured, lowest, highest)}))
    return () if found.knee.low == found.knee.high else tuple(sorted(in_question))


def _middle(unmeasured: Sequence[int], lowest: int, highest: int) -> int:
    """Return the level whose ratio to both ends is most alike."""
    wanted = math.sqrt(max(1, lowest) * highest)
    return min(unmeasured, key=lambda level: abs(math.log(level / wanted)))
