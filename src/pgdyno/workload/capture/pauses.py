"""Pauses of sessions between two transactions, summarized in a few numbers for a replay. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from statistics import fmean

from pgdyno.model.experiments.captured import CapturedWorkload

_PARTS = 20  # arbitrary: they fit on a line of a file, and show the longest 5 % separately
_DIGITS = 4


def with_pauses(
    workload: CapturedWorkload, pauses_s: Sequence[float], idle: float | None = None
) -> CapturedWorkload:
    """Return a workload with the observed pauses, at least one.

    ``idle`` is the mean number of sessions outside transactions. It determines the mean pause (Little's law)
    more precisely than a sample of pauses, which has only those seen to end. None: all pauses are known.
    """
    rate_tps, mean_s = workload.transactions_per_s, fmean(pauses_s)
    if idle is None or not rate_tps:
        return replace(workload, pauses_s=typical_pauses(pauses_s))
    each_s = [one * idle / rate_tps / mean_s if mean_s else idle / rate_tps for one in pauses_s]
    return replace(workload, pauses_s=typical_pauses(each_s))


def typical_pauses(pauses_s: Sequence[float]) -> tuple[float, ...]:
    """Return the means of equal parts of the sorted pauses, from shortest to longest.

    Unlike quantiles, these means preserve the mean of all pauses, which determines the transaction rate.
    """
    ordered, count = sorted(pauses_s), len(pauses_s)
    parts = min(_PARTS, count)
    sums = list(accumulate(ordered, initial=0.0))

    def sum_of_first(many: float) -> float:
        whole = int(many)
        return sums[whole] + ((many - whole) * ordered[whole] if whole < count else 0.0)

    ends = [sum_of_first(count * part / parts) for part in range(parts + 1)]
    # Rounding errors can make equal pauses differ in their last digit: sort after rounding.
    return tuple(sorted(_rounded((end - start) * parts / count) for start, end in pairwise(ends)))


def _rounded(seconds: float) -> float:
    return float(f"{max(0.0, seconds):.{_DIGITS}g}")
