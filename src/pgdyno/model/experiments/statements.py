"""Statements of a workload on the measured servers: the server's counts, and the verdict on each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pgdyno.model.experiments.verdict import Decision, Interval

OTHERS = "other statements"
"""Name of the statements that take hardly any time, added up."""
UNNAMED = "not of the workload"
"""Name of the statements that are none of the workload's, added up."""
SHARED = " / "
"""Between the names of statements with equal text, which the server counts as one."""
_FEWEST_SHARE = 0.0005  # of an arm's time in a block
_MOST_KEPT = 300


@dataclass(frozen=True, slots=True)
class StatementCount:
    """The server's counters of a statement; the time includes planning. Blocks were hit or read."""

    calls: int
    time_ms: float
    rows: int
    blocks: int
    wal_bytes: int

    def __add__(self, other: StatementCount) -> StatementCount:
        """Return the counters of both."""
        return StatementCount(
            self.calls + other.calls,
            self.time_ms + other.time_ms,
            self.rows + other.rows,
            self.blocks + other.blocks,
            self.wal_bytes + other.wal_bytes,
        )

    def since(self, before: StatementCount) -> StatementCount:
        """Return the increase since an earlier reading."""
        return StatementCount(
            self.calls - before.calls,
            self.time_ms - before.time_ms,
            self.rows - before.rows,
            self.blocks - before.blocks,
            self.wal_bytes - before.wal_bytes,
        )


NOTHING_COUNTED = StatementCount(0, 0.0, 0, 0, 0)


@dataclass(frozen=True)
class StatementVerdict:
    """The verdict on the server's time per call of a statement, ``variant`` against ``baseline``.

    ``share`` is the statement's part of the baseline's time. Times are means in ms; None: no call. ``effect``
    is their ratio, as the mean over rounds. ``calls`` are the mean calls per round, of the arm with fewer.
    """

    workload: str
    variant: str
    baseline: str
    statement: str
    share: float
    calls: float
    before_ms: float | None
    after_ms: float | None
    decision: Decision
    reason: str
    effect: float | None = None
    interval: Interval | None = None
    p_adjusted: float | None = None


@dataclass(frozen=True)
class UsedPlans:
    """The plans of a statement on a variant's server, for several values; each is lines of text."""

    workload: str
    statement: str
    variant: str
    shapes: tuple[tuple[str, ...], ...]


def added_up(counts: Iterable[StatementCount]) -> StatementCount:
    """Return the sum of counts."""
    return sum(counts, start=NOTHING_COUNTED)


def trimmed(arms: Sequence[Mapping[str, StatementCount]]) -> list[dict[str, StatementCount]]:
    """Return each arm's counts of the statements that any arm spent some time on, and all others as one.

    All arms keep the same names: a statement that hardly takes time in one arm may take much in another.
    """
    shares: dict[str, float] = {}
    for counts in arms:
        whole = sum(one.time_ms for one in counts.values()) or 1.0
        for name, one in counts.items():
            shares[name] = max(shares.get(name, 0.0), one.time_ms / whole)
    costliest = sorted(shares, key=lambda name: -shares[name])[:_MOST_KEPT]
    kept = {UNNAMED, *(name for name in costliest if shares[name] >= _FEWEST_SHARE)}
    return [_with_others(counts, kept) for counts in arms]


def _with_others(counts: Mapping[str, StatementCount], kept: set[str]) -> dict[str, StatementCount]:
    others = added_up(one for name, one in counts.items() if name not in kept)
    found = {name: one for name, one in counts.items() if name in kept}
    return {**found, OTHERS: others} if others.calls else found
