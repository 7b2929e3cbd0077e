"""Scaling with a number (workers, clients, CPUs): levels, the knee, fitted laws."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.experiments.verdict import Interval


@dataclass(frozen=True)
class Level:
    """One level of the factor. ``rate`` is its geometric mean, in the measured unit.

    Where it is missing in some blocks, that is what it would be over all of them.

    ``efficiency`` is the rate for each that works (client; worker, or the leader beside workers), relative to
    the lowest level.
    """

    level: int
    blocks: int
    rate: float
    ratio_to_best: Interval  # of the rate, to the highest of all levels
    efficiency: Interval | None  # None: not enough blocks in common with the lowest level


@dataclass(frozen=True)
class Knee:
    """The smallest level that is as good as the best, but for ``tolerance``, lies within these two.

    ``low`` is the smallest level that may be it, ``high`` the smallest that is as good for sure; None: the
    data show that for no level.
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
    """Levels by which the curve goes down and up again: the middle one is worse than both others."""

    before: int
    at: int
    after: int


@dataclass(frozen=True)
class Law:
    """A law of scaling, fitted. Throughput at N is proportional to N / (1 + σ(N−1) + κN(N−1)).

    ``contention`` is σ, the part that runs alone; ``crosstalk`` κ, what each pair costs, None for Amdahl's
    law, which has none. ``peak`` is the level where the law is highest, of those between the lowest and the
    highest that were measured; None: none of these. Beyond them nothing says that the law holds.
    ``p_value`` tests whether what the law leaves unexplained is more than the noise; None: nothing is left to
    test it by, and it is not said to fit.
    """

    name: str
    contention: Interval
    crosstalk: Interval | None
    peak: float | None
    p_value: float | None


@dataclass(frozen=True)
class Confirmation:
    """A level that the first rounds recommend, and its rate in ``rounds`` later ones to that of ``against``.

    That is the level that comes closest to refuting it. Of the interval each end is passed with a probability
    of 1 − its level: what has to hold is the lower one.
    """

    level: int
    against: int
    ratio: Interval
    rounds: int
    is_confirmed: bool


@dataclass(frozen=True)
class Scaling:
    """The findings about one curve. ``worse_from``: from this level on certainly worse than the best.

    ``law`` is the name of the simplest law that the data do not contradict, None if they contradict all.
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
        """Whether nothing shows that the curve goes up again after it went down."""
        return not self.dips
