"""The record of a search: its trials in order, and the shortening of its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pgdyno.model.tuning.space import Point, Space

TUNED = "tuned"
"""The name of the result's variant in the final experiment that proves it."""


class TrialState(StrEnum):
    """How a trial ended."""

    WON = "won"  # faster than the incumbent; it is the new incumbent
    LOST = "lost"  # slower than the incumbent, or slower than the default on some workload
    CLOSE = "close"  # indistinguishable from the incumbent in its rounds
    FAILED = "failed"  # its server did not start, or crashed
    OVER_LIMIT = "over a limit"  # stopped: the server's latency or memory exceeded its owner's limit
    REFUSED = "refused"  # not started: it does not fit into memory, or is not durable
    RUNNING = "running"


@dataclass(frozen=True)
class RoundRatios:
    """Means over the blocks of one round: logarithms of ratios of throughput."""

    to_incumbent: float
    to_default: float
    incumbent_to_default: float


@dataclass(frozen=True)
class TrialRound(RoundRatios):
    """Means over all workloads, and per workload; searches of earlier versions lack the latter."""

    by_workload: Mapping[str, RoundRatios] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """A candidate measured against the incumbent and the default, in rounds of all three servers.

    ``incumbent`` is the number of the trial that was the incumbent at the time; None: the default.
    """

    number: int  # from 1
    point: Point
    incumbent: int | None
    rounds: tuple[TrialRound, ...] = ()
    state: TrialState = TrialState.RUNNING
    reason: str = ""  # of a failure; for a loss, the workloads on which it is slower than the default

    @property
    def score(self) -> float | None:
        """The objective of the samplers: the gain, or that on its worst workload if that was why it lost."""
        if self.state is not TrialState.LOST or not self.reason:
            return self.gain
        names = self.rounds[0].by_workload
        return min(_mean([one.by_workload[name].to_default for one in self.rounds]) or 0.0 for name in names)

    @property
    def gain(self) -> float | None:
        """The mean log-ratio of its throughput to the default's; None if it failed or completed no round."""
        return None if self.has_failed else _mean([one.to_default for one in self.rounds])

    @property
    def has_failed(self) -> bool:
        """Whether it has no valid result, regardless of completed rounds."""
        return self.state in {TrialState.FAILED, TrialState.OVER_LIMIT, TrialState.REFUSED}


@dataclass(frozen=True)
class Removal:
    """An attempt to remove changes from the result, measured against the original winner.

    ``ratio`` is its throughput relative to the winner's on its worst workload, with bounds; None if no round
    was completed.
    """

    keys: tuple[str, ...]
    is_kept: bool  # the removal is kept: the result lacks these changes
    rounds: int
    ratio: tuple[float, float, float] | None


@dataclass(frozen=True)
class Tuning:
    """A search so far. ``winner`` is None while no trial has beaten the default.

    ``subject`` identifies the server with its data sets, to check that a resumed search has the same one.
    ``aims`` are those of a search for several aims, by an earlier version.
    """

    id: str
    sampler: str
    seed: int
    workloads: tuple[str, ...]
    subject: str
    space: Space
    trials: tuple[Trial, ...] = ()
    removals: tuple[Removal, ...] = ()
    answer: Point = field(default_factory=dict)
    experiment: str | None = None  # id of the final experiment that proves the result
    notes: tuple[str, ...] = ()
    aims: tuple[str, ...] = ()

    @property
    def winner(self) -> Trial | None:
        """The last trial that took the incumbent's place."""
        won = [one for one in self.trials if one.state is TrialState.WON]
        return won[-1] if won else None


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
