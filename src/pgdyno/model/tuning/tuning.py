"""The record of a search: its trials in order, and the shortening of its result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeAlias

from pgdyno.base import numbers
from pgdyno.base.numbers import SPACE
from pgdyno.model.plans.plan import Layer
from pgdyno.model.variants.variant import Variant

Point: TypeAlias = Mapping[str, str]
"""A configuration: values by the keys of dimensions; other dimensions keep their original values."""

BUILD = "build"
"""Key of the dimension of PostgreSQL builds; its values are their names."""


@dataclass(frozen=True)
class Dimension:
    """One dimension: ``key`` is a variant's, or ``BUILD``.

    ``values`` are the candidate values without the original one, in ascending order if numeric; ``found`` is
    the original value for display. ``planned`` is the plan's value, None if the plan does not change it.
    ``worth`` is the largest share of a transaction's time that it could save according to the profile; 0:
    unknown. ``brings`` are settings that matter only together with this one: they are set whenever it is,
    and are not dimensions.
    """

    key: str
    layer: Layer
    values: tuple[str, ...]
    found: str
    planned: str | None = None
    worth: float = 0.0
    brings: Point = field(default_factory=dict)


@dataclass(frozen=True)
class Space:
    """All dimensions, in decreasing order of importance by the profile.

    ``kept`` are planned values that every candidate has: a search is too short to evaluate them.
    """

    dimensions: tuple[Dimension, ...]
    kept: Point = field(default_factory=dict)

    @property
    def plan(self) -> Point:
        """The plan's point, without the kept values."""
        return {one.key: one.planned for one in self.dimensions if one.planned is not None}

    def whole(self, point: Point) -> Point:
        """Return a point with the kept values, and with the settings that its dimensions bring."""
        brought = [one.brings for one in self.dimensions if one.key in point]
        return {**self.kept, **{key: value for each in brought for key, value in each.items()}, **point}

    @property
    def points(self) -> int:
        """The number of points."""
        count = 1
        for one in self.dimensions:
            count *= 1 + len(one.values)
        return count


def at_point(base: Variant, name: str, point: Point) -> Variant:
    """Return a point as a variant of the original configuration."""
    settings = {key: value for key, value in point.items() if key != BUILD}
    return replace(
        base,
        name=name,
        settings={**base.settings, **settings},
        server=point.get(BUILD, base.server),
    )


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


class OverLimitError(Exception):
    """A trial of ``variant`` was stopped because the server exceeded a limit; ``reason`` has the figure."""

    def __init__(self, variant: str, reason: str) -> None:
        super().__init__(reason)
        self.variant = variant
        self.reason = reason


@dataclass(frozen=True)
class OwnerLimits:
    """Limits set by the server's owner; None: no limit.

    ``latency_ms`` limits the 99th percentile of a workload's transactions in a trial, ``memory_bytes`` the
    memory of all processes of the server.
    """

    latency_ms: float | None = None
    memory_bytes: int | None = None

    @property
    def is_any(self) -> bool:
        """Whether there is a limit."""
        return self.latency_ms is not None or self.memory_bytes is not None

    def over_latency(self, p99_ms: float, workload: str) -> str:
        """Return the reason if a 99th percentile exceeds the limit; empty if it does not."""
        if self.latency_ms is None or p99_ms <= self.latency_ms:
            return ""
        return (
            f"the 99th percentile of {workload} was {numbers.number(p99_ms)}{SPACE}ms, and "
            f"--limit-latency is {numbers.plain(self.latency_ms)}{SPACE}ms"
        )

    def over_memory(self, used_bytes: int) -> str:
        """Return the reason if the server's memory exceeds the limit; empty if it does not."""
        if self.memory_bytes is None or used_bytes <= self.memory_bytes:
            return ""
        return f"the server had {numbers.size(used_bytes)} in memory, and {self._limit()}"

    def over_memory_at_worst(self, worst_bytes: int, found_bytes: int) -> str:
        """Return why a configuration is not tried; empty if it may be.

        It may always use as much memory as the original configuration.
        """
        if self.memory_bytes is None or worst_bytes <= max(self.memory_bytes, found_bytes):
            return ""
        return f"its worst case is {numbers.size(worst_bytes)}, and {self._limit()}"

    def _limit(self) -> str:
        return f"--limit-memory is {numbers.size(self.memory_bytes or 0)}"
