"""Race one candidate against the incumbent: after each round, whether to go on. Pure.

A candidate takes the incumbent's place if it is faster in the mean over the workloads, and on none of them
shown to have lost more of the default's throughput than any plan may (``Terms.max_loss``). While it seems to
have lost that much, but may not have, it takes further rounds.

    symbol  meaning                                                              unit
    n       rounds of this candidate                                             rounds
    m       mean of ln(candidate / incumbent) over them                          1
    σ       noise of one round, pooled over all trials (``noise.py``)            1
    α       the chance of the wrong answer at any of the rounds                  1

The mean leaves m ± σ·√((n + 1)/n² · (2 ln(1/α) + ln(n + 1))) at any n with probability α at most: Robbins'
mixture of normal distributions, with a prior of one round. Anybody may therefore look after each round. A
candidate that is clearly slower is given up early, and cheaply: α is large there, as a good one that is lost
by it is only a loss. The place of the incumbent takes more evidence. What is claimed in the end is measured
again, without any of these rounds.

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
    """A candidate's rounds on one workload, ln(candidate / default), and the noise of one."""

    gains: Sequence[float]
    noise: float

    @property
    def seems_slower(self) -> bool:
        """Whether the mean is beyond the limit."""
        return bool(self.gains) and sum(self.gains) / len(self.gains) < _MOST_LOST

    @property
    def is_slower(self) -> bool:
        """Whether the truth is shown to be beyond the limit."""
        if not self.seems_slower:
            return False
        width = half_width(len(self.gains), self.noise, _WRONGLY_SLOWER)
        return sum(self.gains) / len(self.gains) + width < _MOST_LOST


def standing(leads: Sequence[float], noise: float) -> TrialState:
    """Return how a candidate stands after its rounds; RUNNING: it takes another one.

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
    """Return how far the mean of the rounds may be from the truth."""
    scale = (rounds + 1) / rounds**2
    return noise * math.sqrt(scale * (2 * math.log(1 / alpha) + math.log(rounds + 1)))
