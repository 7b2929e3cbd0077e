"""Two machines compared on one experiment: their ratio, and all other differences.

The machines are called A and B. Ratios are B/A: A takes the role of the baseline.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pgdyno.model.experiments.verdict import Interval, Verdict

A, B = "A", "B"


class Weight(StrEnum):
    """The largest possible influence of a difference, in decreasing order."""

    DECIDES = "decides the result"
    TENS = "can change it by tens of percent"
    FEW = "can change it by a few percent"
    LITTLE = "matters little"

    @property
    def rank(self) -> int:
        """Its position in the order: 0 for the largest influence."""
        return [*Weight].index(self)


@dataclass(frozen=True)
class Difference:
    """A difference, or possible difference, between the two sides other than the machine.

    ``a`` and ``b`` None: unknown there. ``reason`` justifies the weight, ``source`` is its origin.
    """

    subject: str
    a: str | None
    b: str | None
    weight: Weight
    reason: str
    source: str

    @property
    def is_known(self) -> bool:
        """Whether both sides are known, and so known to differ."""
        return self.a is not None and self.b is not None


@dataclass(frozen=True)
class MachineFact:
    """A fact about both machines; None: unknown."""

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

    ``verdict`` is on B against A. If the number of clients or of parallel workers varies, ``level`` is that
    number, ``unit`` its unit, ``clients`` the number of clients, and ``load`` the load that they issue.
    ``operation`` is the counted unit, if not transactions.
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
    """The client's share of the CPU time of client and server together, on A and B."""


@dataclass(frozen=True)
class DerivedRatio:
    """A measured ratio divided by a factor assumed to be exact: a price, a frequency."""

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
    notes: tuple[str, ...]  # without those that both have


@dataclass(frozen=True)
class MachineComparison:
    """The results of one experiment that ran on two machines."""

    question: str
    sides: tuple[Side, Side]
    metrics: tuple[ComparedMetric, ...]
    per_frequency: tuple[DerivedRatio, ...]
    per_price: tuple[DerivedRatio, ...]
    machine: tuple[MachineFact, ...]
    differences: tuple[Difference, ...]  # the largest possible influence first
    warnings: tuple[str, ...]
    left_out: tuple[str, ...]  # workloads and variants present on one side only
