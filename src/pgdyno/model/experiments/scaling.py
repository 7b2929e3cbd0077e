"""Scaling with a number of workers, clients or CPUs: levels, the knee, fitted laws."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.experiments.verdict import Interval


@dataclass(frozen=True)
class Level:
    """One level of the factor. ``rate`` is its geometric mean, in the measured unit.

    If the level is missing in some blocks, ``rate`` is the estimate over all blocks.

    ``efficiency`` is the rate per process (client; worker, or participating leader), relative to the lowest
    level.
    """

    level: int
    blocks: int
    rate: float
    ratio_to_best: Interval  # of the rate, to the highest of all levels
    efficiency: Interval | None  # None: not enough blocks in common with the lowest level


@dataclass(frozen=True)
class Knee:
    """Bounds on the smallest level that is as good as the best, within ``tolerance``.

    ``low`` is the smallest level that may be as good, ``high`` the smallest that certainly is; None: the data
    do not show this for any level.
    """

    low: int
    high: int | None
    tolerance: float  # 0.05: at least 95 % of the best

    def __str__(self) -> str:
        """Return ``4``, ``between 4 and 6``, or ``4 or more``."""
        if self.high is None:
            return f"{self.low} or more"
        return str(self.low) if self.low == self.high else f"between {self.low} and {self.high}"


@dataclass(frozen=True)
class Dip:
    """Three levels where the curve goes down and up again: the middle one is worse than both others."""

    before: int
    at: int
    after: int


@dataclass(frozen=True)
class Law:
    """A fitted law of scaling. Throughput at N is proportional to N / (1 + σ(N−1) + κN(N−1)).

    ``contention`` is σ, the serial fraction; ``crosstalk`` is κ, the cost per pair, None for Amdahl's law,
    which has none. ``peak`` is the level where the law is highest; None if it lies outside the measured
    range, where the law is not known to hold.
    ``p_value`` is that of the lack-of-fit test: whether the misfit exceeds the noise; None: no degrees of
    freedom are left for the test, and no fit is claimed.
    """

    name: str
    contention: Interval
    crosstalk: Interval | None
    peak: float | None
    p_value: float | None


@dataclass(frozen=True)
class Confirmation:
    """A level recommended by the first rounds, and its ratio to ``against`` in ``rounds`` later ones.

    ``against`` is the level that comes closest to refuting the recommendation. Each end of the interval is a
    one-sided bound with error probability 1 − its level; the lower one decides.
    """

    level: int
    against: int
    ratio: Interval
    rounds: int
    is_confirmed: bool


@dataclass(frozen=True)
class Scaling:
    """The findings about one curve. ``worse_from``: from this level on all are certainly worse than the best.

    ``law`` is the name of the simplest law that the data do not contradict; None if they contradict all.
    """

    levels: tuple[Level, ...]
    best: int
    knee: Knee
    worse_from: int | None
    dips: tuple[Dip, ...]
    laws: tuple[Law, ...]
    law: str | None

    @property
    def is_unimodal(self) -> bool:
        """Whether the data show no dip."""
        return not self.dips
