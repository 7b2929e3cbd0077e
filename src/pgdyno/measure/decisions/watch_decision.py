"""Test, after every pair of periods, whether a plan slows down a server's production traffic. Pure.

A pair is a period with the plan and one without it. Its figure is the logarithm of the ratio of their mean
times per transaction. A fixed-sample test, repeated after every pair, would eventually find harm where there
is none. This test is therefore anytime-valid (``stats/anytime.py``): a harmless plan is called harmful in at
most 5 % of all watches, however long. It assumes that pair figures are independent and normal.

A longer tail changes the mean in proportion to its share of the total time: if the slowest 5 % of
transactions take half of the time, a 10 % longer tail adds 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from pgdyno.postgres.statement_counts import Traffic
from pgdyno.stats import anytime, nested
from pgdyno.stats.sample import FloatArray, Sample

FALSE_ALARMS = 0.05
LEAST_TRANSACTIONS = 20
"""The minimum for a period to count. Arbitrary: the mean of fewer is unreliable."""


class WatchState(StrEnum):
    """The possible results of a watch."""

    HARM = "harm"
    NO_HARM = "no harm"
    TOO_LITTLE = "too little traffic"
    ENDED_EARLY = "ended early"


@dataclass(frozen=True)
class Watched:
    """The result of a watch, and whether the plan is in force now.

    ``pairs`` is the number that counted, of ``pairs_planned``. ``ratio`` is the mean time per transaction
    with the plan divided by that without it; None if no pair counted. ``reason`` is why it ended early.
    """

    state: WatchState
    pairs: int
    pairs_planned: int
    ratio: float | None
    is_applied: bool
    reason: str | None = None

    @property
    def is_alarm(self) -> bool:
        """Whether the plan is in force but not shown to be harmless, so the user has to decide."""
        return self.is_applied and self.state is not WatchState.NO_HARM


def log_ratio(without: Traffic, with_plan: Traffic) -> float | None:
    """Return the figure of a pair; None if either period had too little traffic."""
    if not (has_traffic(without) and has_traffic(with_plan)):
        return None
    mean_ms = with_plan.active_ms / with_plan.transactions
    return math.log(mean_ms / (without.active_ms / without.transactions))


def has_traffic(period: Traffic) -> bool:
    """Whether a period counts."""
    return period.transactions >= LEAST_TRANSACTIONS and period.active_ms > 0


def harm_p_value(pairs: Sample) -> FloatArray:
    """Return an anytime-valid p-value of the null hypothesis that the plan is no slower. Shapes: (…)."""
    return anytime.one_sided_p(nested.estimate(pairs), null=0.0)


def is_harm(ratios: Sequence[float]) -> bool:
    """Whether the pairs so far show that transactions take longer with the plan."""
    pairs = Sample.of([[ratio] for ratio in ratios])
    return nested.missing(pairs) is None and float(harm_p_value(pairs)) <= FALSE_ALARMS


def watched(ratios: Sequence[float], planned: int, *, is_applied: bool, reason: str | None = None) -> Watched:
    """Return the result of a watch, from the pairs that counted.

    ``reason`` is why the watch ended early; None if it did not.
    """
    ratio = math.exp(math.fsum(ratios) / len(ratios)) if ratios else None
    return Watched(_state(ratios, planned, reason), len(ratios), planned, ratio, is_applied, reason)


def _state(ratios: Sequence[float], planned: int, reason: str | None) -> WatchState:
    if reason is not None:
        return WatchState.ENDED_EARLY
    if is_harm(ratios):
        return WatchState.HARM
    return WatchState.NO_HARM if is_enough(len(ratios), planned) else WatchState.TOO_LITTLE


def is_enough(counted: int, planned: int) -> bool:
    """Return whether enough pairs counted to judge a plan: at least half of those planned."""
    return 2 * counted >= planned and counted >= nested.MINIMUM_BLOCKS
