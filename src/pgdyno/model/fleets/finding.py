"""Findings: all that a fleet's report takes of one experiment, a hundredth of its size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pgdyno.model.experiments.experiment import Stopping
from pgdyno.model.experiments.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison by its names."""

    workload: str
    baseline: str
    variant: str

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.variant} against {self.baseline} on {self.workload}"


@dataclass(frozen=True, slots=True)
class LogRatio:
    """A mean log-ratio, as far as it is known."""

    mean: float
    standard_error: float
    df: float


@dataclass(frozen=True, slots=True)
class FoundEffect:
    """The verdict on one metric, as if it were the experiment's only one; no effect without an interval."""

    verdict: Verdict
    effect: LogRatio | None


@dataclass(frozen=True, slots=True)
class FoundComparison:
    """A comparison with its effects by metric. ``conditions`` define it, by subject; None: not recorded.

    ``operation`` is what is counted, if not transactions.
    """

    compared: Compared
    conditions: Mapping[str, str | None]
    operation: str | None
    effects: Mapping[str, FoundEffect]


@dataclass(frozen=True, slots=True)
class FleetFinding:
    """An experiment as a fleet sees it.

    ``blocks_sha256`` is of its blocks: a copy under another id has the same. ``facts`` are those of its
    machine, in words. ``unsafe_settings`` are by variant.
    """

    experiment: str  # its id
    created: str
    question: str
    blocks_sha256: str
    facts: Mapping[str, str]
    memory_bytes: int | None
    level: float
    power: float
    equivalence_margin: float
    stopping: Stopping
    is_complete: bool
    notes: tuple[str, ...]
    unsafe_settings: Mapping[str, tuple[str, ...]]
    parts: tuple[str, ...]
    emulated_machine: str | None
    comparisons: tuple[FoundComparison, ...]
