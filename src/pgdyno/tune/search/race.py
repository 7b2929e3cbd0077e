"""Race one candidate against the incumbent: decide after each round whether to continue. Pure.

A candidate replaces the incumbent if its mean over the workloads is faster, and if on no workload it is shown
to lose more of the default's throughput than a plan may (``Terms.max_loss``). While such a loss seems likely
but is not certain, it gets further rounds.

    symbol  meaning                                                              unit
    n       rounds of this candidate                                             rounds
    m       mean of ln(candidate / incumbent) over them                          1
    σ       noise of one round, pooled over all trials (``noise.py``)            1
    α       probability of a wrong decision after any round                      1

The truth lies outside of m ± σ·√((n + 1)/n² · (2 ln(1/α) + ln(n + 1))) at any n with probability at most α:
Robbins' mixture of normal distributions, with a prior of one round. Therefore a decision after every round is
valid. A clearly slower candidate is dropped early: α is large there, because dropping a good one does no harm
beyond the lost gain. Replacing the incumbent needs more evidence. The final claim is measured again, without
any of these rounds.

Sources: Robbins (1970), Annals of Mathematical Statistics 41, 1397-1409; Howard, Ramdas, McAuliffe, Sekhon
(2021), Annals of Statistics 49, 1055-1080, §3.2 (mixture boundary).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.model.plans.terms import Terms
from pgdyno.model.tuning.tuning import TrialState

MOST_ROUNDS = 5
WRONGLY_WON = 0.05
_WRONGLY_LOST = 0.5
_WRONGLY_SLOWER = 0.05  # on one workload
_MOST_LOST = math.log(1 - Terms().max_loss)


@dataclass(frozen=True)
class OnWorkload:
    """A candidate's rounds on one workload, ln(candidate / default), and the noise of a round."""

    gains: Sequence[float]
    noise: float

    @property
    def seems_slower(self) -> bool:
        """Whether the mean exceeds the permitted loss."""
        return bool(self.gains) and sum(self.gains) / len(self.gains) < _MOST_LOST

    @property
    def is_slower(self) -> bool:
        """Whether the loss certainly exceeds the permitted one."""
        if not self.seems_slower:
            return False
        width = half_width(len(self.gains), self.noise, _WRONGLY_SLOWER)
        return sum(self.gains) / len(self.gains) + width < _MOST_LOST


def standing(leads: Sequence[float], noise: float) -> TrialState:
    """Return the state of a candidate after its rounds; RUNNING: it gets another round.

    Shapes: leads[round] = ln(candidate / incumbent).
    """
    rounds = len(leads)
    if not rounds:
        return TrialState.RUNNING
    mean = sum(leads) / rounds
    if mean > half_width(rounds, noise, WRONGLY_WON):
        return TrialState.WON
    if mean < -half_width(rounds, noise, _WRONGLY_LOST):
        return TrialState.LOST
    return TrialState.CLOSE if rounds >= MOST_ROUNDS else TrialState.RUNNING


def half_width(rounds: int, noise: float, alpha: float) -> float:
    """Return the half width of the interval about the mean of the rounds."""
    scale = (rounds + 1) / rounds**2
    return noise * math.sqrt(scale * (2 * math.log(1 / alpha) + math.log(rounds + 1)))
