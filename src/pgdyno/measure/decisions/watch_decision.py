"""Test whether a plan slows down a server's own traffic. Pure.

The test is repeated after every pair of periods.

A pair is a period with the plan and one without it; its figure is ln of the ratio of both mean times per
transaction. Whoever looks after every pair would at last see harm where there is none: the test is the
anytime-valid one of ``stats/anytime.py``, so that a plan that makes nothing slower is called harmful in at
most 5 % of all watches, however long they are. It takes pair figures as independent and normal.

The mean sees a longer tail by what that adds to the whole time: where the slowest 5 % of transactions take
half of it, a tail that is 10 % longer adds 5 %.
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
"""Of a period that counts. Arbitrary: the mean of fewer says little."""


class WatchState(StrEnum):
    """The possible results of a watch."""

    HARM = "harm"
    NO_HARM = "no harm"
    TOO_LITTLE = "too little traffic"
    ENDED_EARLY = "ended early"


@dataclass(frozen=True)
class Watched:
    """The result of a watch, and whether the plan is in force now.

    ``pairs`` are those that counted, of ``pairs_planned``; ``ratio`` is the mean time per transaction with
    the plan over that without it, None if no pair counted. ``reason`` is why it ended early.
    """

    state: WatchState
    pairs: int
    pairs_planned: int
    ratio: float | None
    is_applied: bool
    reason: str | None = None

    @property
    def is_alarm(self) -> bool:
        """Whether the plan is in force but not proven harmless: the user has to decide."""
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
    """Return an anytime-valid p-value against the plan making nothing slower. Shapes: (…)."""
    return anytime.one_sided_p(nested.estimate(pairs), null=0.0)


def is_harm(ratios: Sequence[float]) -> bool:
    """Whether the pairs so far show that transactions take longer with the plan."""
    pairs = Sample.of([[ratio] for ratio in ratios])
    return nested.missing(pairs) is None and float(harm_p_value(pairs)) <= FALSE_ALARMS


def watched(ratios: Sequence[float], planned: int, *, is_applied: bool, reason: str | None = None) -> Watched:
    """Return the result of the pairs that counted.

    ``reason`` is the cause of the end of the watch, if other than the pairs.
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
    """Return whether enough pairs counted to judge a plan: half of those planned."""
    return 2 * counted >= planned and counted >= nested.MINIMUM_BLOCKS
