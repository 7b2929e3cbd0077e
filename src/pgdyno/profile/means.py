"""Means over windows with their intervals, for all that is no time."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.profile.records.microarchitecture import Mean
from pgdyno.stats.amount import mean_amount

_LEVEL = 0.95


def mean_of(values: Sequence[float]) -> Mean:
    """Return the mean of one value per window, with its interval where there is more than one."""
    if len(values) < 2:
        return Mean(values[0])
    amount = mean_amount(values, _LEVEL)
    return Mean(amount.mean, amount.low, amount.high)
