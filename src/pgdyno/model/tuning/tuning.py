"""The record of a search: trials in the order in which they ran, and how its answer was made shorter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pgdyno.model.plans.terms import PLAN
from pgdyno.model.tuning.aims import Aim
from pgdyno.model.tuning.space import Point, Space

TUNED = "tuned"
"""The name of the answer's variant in its proof."""
MEMBER = "member"
"""What the variants of a front's members are called in their proof, before their number."""
FIRST_MEMBER = f"{MEMBER}-1"


class TrialState(StrEnum):
    """How a trial ended."""

    WON = "won"  # faster than the incumbent, whose place it took; with several aims: on the front
    LOST = "lost"  # slower than the incumbent, or on a workload than the default; or off the front
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
    """Means over all workloads, and those of each; older searches have the former alone.

    ``by_aim`` is ln(candidate / default) of every aim of a search that has several, as it was measured: of
    latencies, WAL and memory less is better.
    """

    by_workload: Mapping[str, RoundRatios] = field(default_factory=dict)
    by_aim: Mapping[Aim, float] = field(default_factory=dict)


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
    def by_aim(self) -> Mapping[Aim, float]:
        """The mean ln(candidate / default) of every aim; nothing if it failed, or the search has none."""
        if self.has_failed or not self.rounds:
            return {}
        return {
            aim: sum(one.by_aim[aim] for one in self.rounds) / len(self.rounds)
            for aim in self.rounds[0].by_aim
        }

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
class FrontMember:
    """A configuration of the front. ``name`` is its variant's in the proof; ``point`` is whole."""

    name: str
    trial: int
    point: Point


@dataclass(frozen=True)
class Tuning:
    """A search so far. ``winner`` is None while nothing has beaten the default.

    ``subject`` is the server with its data sets, by which a search that goes on is known to be the same.
    ``aims`` are those of a search for a front, which ends with ``members``; none: it is for throughput, and
    ends with an ``answer``.
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
    aims: tuple[Aim, ...] = ()
    members: tuple[FrontMember, ...] = ()

    @property
    def winner(self) -> Trial | None:
        """The last trial that took the incumbent's place."""
        won = [one for one in self.trials if one.state is TrialState.WON]
        return won[-1] if won else None

    @property
    def offered(self) -> tuple[FrontMember, ...]:
        """The members of the front, and the plan if it ran and is none of them."""
        in_front = {one.trial for one in self.members}
        ran = (one for one in self.trials if one.point == self.space.plan and one.by_aim)
        plan = next((one for one in ran if one.number not in in_front), None)
        if not self.members or plan is None:
            return self.members
        return (*self.members, FrontMember(PLAN, plan.number, self.space.whole(plan.point)))


def _mean(values: list[float]) -> float | None:
    return sum(values) / len(values) if values else None
