"""Two machines compared on one experiment: their ratio, and all other differences.

The machines are called A and B. Ratios are those of B to A: A stands where elsewhere the baseline does.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pgdyno.model.experiments.verdict import Interval, Verdict

A, B = "A", "B"


class Weight(StrEnum):
    """How much a difference can matter, at most; the heaviest first."""

    DECIDES = "decides the result"
    TENS = "can change it by tens of percent"
    FEW = "can change it by a few percent"
    LITTLE = "matters little"

    @property
    def rank(self) -> int:
        """Its place among all: 0 for the heaviest."""
        return [*Weight].index(self)


@dataclass(frozen=True)
class Difference:
    """Something besides the machine that is not known to be the same on both sides.

    ``a`` and ``b`` None: not known there. ``reason`` says why it matters as much, ``source`` who says so.
    """

    subject: str
    a: str | None
    b: str | None
    weight: Weight
    reason: str
    source: str

    @property
    def is_known(self) -> bool:
        """Whether both sides are known, so that they are known to differ."""
        return self.a is not None and self.b is not None


@dataclass(frozen=True)
class MachineFact:
    """A fact about one of the machines; None: not known."""

    subject: str
    a: str | None
    b: str | None

    @property
    def is_equal(self) -> bool:
        """Whether both are known to be the same."""
        return self.a is not None and self.a == self.b


@dataclass(frozen=True)
class ComparedMetric:
    """One metric of one workload and variant. ``a`` and ``b`` are geometric means over rounds.

    ``verdict`` is on B against A. Where the number of clients or of parallel workers varies, ``level`` is
    that number, ``unit`` what it counts, ``clients`` how many of these there are, and ``load`` what they
    issue. ``operation`` is what is counted, if not transactions.
    """

    workload: str
    variant: str
    metric: str
    a: float | None
    b: float | None
    verdict: Verdict
    load: str | None = None
    clients: int | None = None
    level: int | None = None
    unit: str | None = None  # clients, workers
    operation: str | None = None
    client_shares: tuple[float | None, float | None] = (None, None)
    """Of the CPU time of client and server together, what the client took."""


@dataclass(frozen=True)
class DerivedRatio:
    """A ratio that follows from a measured one by a factor that is taken as known: a price, a frequency."""

    workload: str
    variant: str
    title: str
    a: float
    b: float
    ratio: Interval


@dataclass(frozen=True)
class Side:
    """One of the two experiments."""

    name: str  # A or B
    experiment: str  # its id
    created: str
    machine: str  # in words
    server: str
    price_per_hour: float | None
    notes: tuple[str, ...]  # those that the other one does not have


@dataclass(frozen=True)
class MachineComparison:
    """Everything that can be said about two machines from one experiment that ran on both."""

    question: str
    sides: tuple[Side, Side]
    metrics: tuple[ComparedMetric, ...]
    per_frequency: tuple[DerivedRatio, ...]
    per_price: tuple[DerivedRatio, ...]
    machine: tuple[MachineFact, ...]
    differences: tuple[Difference, ...]  # the heaviest first
    warnings: tuple[str, ...]
    left_out: tuple[str, ...]  # workloads and variants that only one of them has
