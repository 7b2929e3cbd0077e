"""Compute a simulated processor's figures per transaction from callgrind's counts.

A longer and a shorter session differ only in their number of transactions; their difference excludes the work
to start and end a session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.profile.callgrind import TAKEN, CodeCounts
from pgdyno.profile.records.microarchitecture import (
    INSTRUCTIONS,
    L1D_MISSES,
    EventCount,
    Mean,
    Microarchitecture,
)

_FIGURES = {
    INSTRUCTIONS: ("Ir",),
    "data reads": ("Dr",),
    "data writes": ("Dw",),
    "branches": ("Bc", "Bi"),
    "taken branches": (TAKEN,),
    "branch mispredictions": ("Bcm", "Bim"),
    "conditional branches mispredicted": ("Bcm",),
    "indirect branches mispredicted": ("Bim",),
    "L1i misses": ("I1mr",),
    L1D_MISSES: ("D1mr", "D1mw"),
    "L2 misses": ("ILmr", "DLmr", "DLmw"),
}
SIMULATED_LIMITS = (
    "simulated: a single session, PostgreSQL's own code without the kernel's, caches not shared with other "
    "processes, no prefetching, no speculation, a simple branch predictor. The figures rank code layouts and "
    "explain differences; no time can be derived from them"
)


@dataclass(frozen=True)
class SimulatedRun:
    """The work of the additional transactions of a longer session."""

    counts: CodeCounts
    transactions: int

    @property
    def instructions(self) -> float:
        """Instructions per transaction."""
        return self.counts.totals["Ir"] / self.transactions


def of_simulation(source: str, runs: Sequence[SimulatedRun], remarks: Sequence[str]) -> Microarchitecture:
    """Return the figures of equal runs."""
    events = tuple(
        EventCount(
            name,
            Mean(sum(_per_transaction(run, named) for run in runs) / len(runs)),
            " + ".join(named),
        )
        for name, named in _FIGURES.items()
        if all(one in run.counts.totals for run in runs for one in named)
    )
    return Microarchitecture(
        source,
        is_simulated=True,
        events=events,
        repeats_within=spread([run.instructions for run in runs]),
        remarks=(SIMULATED_LIMITS, *remarks),
    )


def _per_transaction(run: SimulatedRun, events: Sequence[str]) -> float:
    return sum(run.counts.totals[one] for one in events) / run.transactions


def spread(values: Sequence[float]) -> float | None:
    """Return the range of the values, relative to the smallest; None for one value."""
    return max(values) / min(values) - 1 if len(values) > 1 else None
