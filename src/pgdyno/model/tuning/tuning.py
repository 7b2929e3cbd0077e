"""The record of a search: trials in the order in which they ran, and how its answer was made shorter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pgdyno.model.tuning.space import Point, Space

TUNED = "tuned"
"""The name of the answer's variant in its proof."""


class TrialState(StrEnum):
    """How a trial ended."""

    WON = "won"  # faster than the incumbent, whose place it took
    LOST = "lost"  # slower than the incumbent, or on a workload than the default
    CLOSE = "close"  # not told from the incumbent in the rounds that it was given
    FAILED = "failed"  # its server did not start, or died
    OVER_LIMIT = "over a limit"  # it was ended: the server's latency or memory went over its owner's limit
    REFUSED = "refused"  # it was not started: it does not fit into memory, or is not durable
    RUNNING = "running"


@dataclass(frozen=True)
class RoundRatios:
    """Means of one round over its blocks: logarithms of ratios of throughput."""

    to_incumbent: float
    to_default: float
    incumbent_to_default: float


@dataclass(frozen=True)
class TrialRound(RoundRatios):
    """Means over all workloads, and those of each; older searches have the former alone."""

    by_workload: Mapping[str, RoundRatios] = field(default_factory=dict)


@dataclass(frozen=True)
class Trial:
    """A candidate beside the incumbent and the default, in rounds of all three servers.

    ``incumbent`` is the number of the trial that was the incumbent then; None: the default.
    """

    number: int  # from 1
    point: Point
    incumbent: int | None
    rounds: tuple[TrialRound, ...] = ()
    state: TrialState = TrialState.RUNNING
    reason: str = ""  # of a failure; of a loss, the workloads on which it is slower than the default

    @property
    def score(self) -> float | None:
        """The figure that samplers go by: the gain, or that of its worst workload if it lost by that."""
        if self.state is not TrialState.LOST or not self.reason:
            return self.gain
        names = self.rounds[0].by_workload
        return min(_mean([one.by_workload[name].to_default for one in self.rounds]) or 0.0 for name in names)

    @property
    def gain(self) -> float | None:
        """The mean logarithm of its throughput over the default's; None if it failed, or no round ended."""
        return None if self.has_failed else _mean([one.to_default for one in self.rounds])

    @property
    def has_failed(self) -> bool:
        """Whether it has no figure, however many of its rounds ended."""
        return self.state in {TrialState.FAILED, TrialState.OVER_LIMIT, TrialState.REFUSED}


@dataclass(frozen=True)
class Removal:
    """An attempt to leave changes out of the answer, measured against the original winner.

    ``ratio`` is its throughput over the winner's on the workload where it is worst, with its bounds; None if
    no round ended.
    """

    keys: tuple[str, ...]
    is_kept: bool  # the answer does without them
    rounds: int
    ratio: tuple[float, float, float] | None


@dataclass(frozen=True)
class Tuning:
    """A search so far. ``winner`` is None while nothing has beaten the default.

    ``subject`` is the server with its data sets, by which a search that goes on is known to be the same.
    ``aims`` are those of a search that an earlier version made for several of them.
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
    experiment: str | None = None  # the proof's
    notes: tuple[str, ...] = ()
    aims: tuple[str, ...] = ()

    @property
    def winner(self) -> Trial | None:
        """The last trial that took the incumbent's place."""
        won = [one for one in self.trials if one.state is TrialState.WON]
        return won[-1] if won else None


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
