"""Pauses of sessions between two transactions, as few numbers that a replay draws from. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise

from pgdyno.model.experiments.captured import CapturedWorkload

_PARTS = 20  # arbitrary: a line of a file, and the longest twentieth is told from the others
_DIGITS = 4


def with_pauses(workload: CapturedWorkload, clients: float, pauses_s: Sequence[float]) -> CapturedWorkload:
    """Return a workload with the pauses that were seen, of which there is at least one.

    ``clients`` is the mean number of sessions at work.
    """
    known = replace(workload, pauses_s=typical_pauses(pauses_s))
    return replace(known, sessions=known.sessions_with(clients))


def typical_pauses(pauses_s: Sequence[float]) -> tuple[float, ...]:
    """Return the means of equal parts of all pauses, from the shortest to the longest.

    Means, and not quantiles: their mean is that of all pauses, on which the rate of transactions depends.
    """
    ordered, count = sorted(pauses_s), len(pauses_s)
    parts = min(_PARTS, count)
    sums = list(accumulate(ordered, initial=0.0))

    def sum_of_first(many: float) -> float:
        whole = int(many)
        return sums[whole] + ((many - whole) * ordered[whole] if whole < count else 0.0)

    ends = [sum_of_first(count * part / parts) for part in range(parts + 1)]
    # Equal pauses can come out of the sums apart by their last digit, and be rounded to different sides.
    return tuple(sorted(_rounded((end - start) * parts / count) for start, end in pairwise(ends)))


def _rounded(seconds: float) -> float:
    return float(f"{max(0.0, seconds):.{_DIGITS}g}")
