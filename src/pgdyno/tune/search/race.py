"""Race one candidate against the incumbent: decide after each round whether to continue. Pure.

A candidate replaces the incumbent if its mean over the workloads is faster, and if on no workload it is shown
to lose more of the default's throughput than a plan may (``Terms.max_loss``). While such a loss seems likely
but is not certain, it gets further rounds.

    symbol  meaning                                                              unit
    n       rounds of this candidate                                             rounds
    m       mean of ln(candidate / incumbent) over them                          1
    σ       noise of one round, pooled over all trials                           1
    α       probability of a wrong decision after any round                      1

The truth lies outside of m ± σ·√((n + 1)/n² · (2 ln(1/α) + ln(n + 1))) at any n with probability at most α:
Robbins' mixture of normal distributions, with a prior of one round. Therefore a decision after every round is
valid. A clearly slower candidate is dropped early: α is large there, because dropping a good one does no harm
beyond the lost gain. Replacing the incumbent needs more evidence. The final claim is measured again, without
any of these rounds.

The variance of rounds about the mean of their candidate, pooled over all candidates, has enough degrees of
freedom to judge the next candidate after its first round, when its own rounds are not informative yet. The
incumbent's rounds against the default would add many more degrees of freedom, but are not used once there are
others: two similarly tuned servers share their noise, a tuned one and the default do not (measured: 1 % and
4 %).

Number of rounds that would show a gain hidden by the noise:

    symbol  meaning                                                              unit
    σ       noise of one round, of ln(candidate / default)                       1
    e       gain to be shown: the largest mean so far, at least 2 %              1
    n       rounds for a 95 % interval that excludes 0 with 80 % power           rounds

A mean of n rounds has the standard error σ/√n. Its interval extends by 1.96 standard errors to each side, and
80 % of means lie at most 0.84 standard errors below the truth: n = ((1.96 + 0.84) σ / e)².

Sources: Robbins (1970), Annals of Mathematical Statistics 41, 1397-1409; Howard, Ramdas, McAuliffe, Sekhon
(2021), Annals of Statistics 49, 1055-1080, §3.2 (mixture boundary).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgdyno.model.plans.plan import Terms
from pgdyno.model.tuning.tuning import Trial, TrialState

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


SIDE_BY_SIDE = 0.01  # initial assumption; measured on a machine with two CPUs: 0.005 … 0.015
ONE_AFTER_THE_OTHER = 0.04  # arbitrary, for whole trials of 10 s: four times as much; not measured
_EXPECTED_TO_DEFAULT = 0.04  # measured on the same machine
_WEIGHT = 3.0  # of the initial assumption, in degrees of freedom
_ENOUGH = 4  # degrees of freedom of candidates with several rounds
_LEAST_WANTED = math.log(1.02)  # the smallest gain that justifies a restart of a server
_STANDARD_ERRORS = 1.96 + 0.84
_FEWEST_ROUNDS = 5  # of a proof


@dataclass(frozen=True)
class LostInNoise:
    """Noise that hides all effects so far. All except ``rounds`` are logarithms of ratios of throughput.

    ``least_gain`` is the smallest gain that a trial can show; proving ``wanted`` takes ``rounds``.
    """

    noise: float
    least_gain: float
    wanted: float
    rounds: int


def noise_of(trials: Iterable[Trial], expected: float = SIDE_BY_SIDE) -> float:
    """Return the standard deviation of ln(candidate / incumbent) of one round."""
    tried = list(trials)
    groups = [_leads(one) for one in tried if one.incumbent is not None and len(one.rounds) > 1]
    if sum(len(group) - 1 for group in groups) >= _ENOUGH:
        return _pooled(groups, expected)
    return _pooled([*groups, *_against_default(tried)], expected)


def noise_on(trials: Iterable[Trial], workload: str) -> float:
    """Return the standard deviation of ln(candidate / default) of one round on one workload."""
    groups: dict[tuple[str, int], list[float]] = defaultdict(list)
    for trial in trials:
        found = [one.by_workload[workload] for one in trial.rounds if workload in one.by_workload]
        groups["candidate", trial.number] += [one.to_default for one in found]
        if trial.incumbent is not None:
            groups["incumbent", trial.incumbent] += [one.incumbent_to_default for one in found]
    return _pooled([group for group in groups.values() if group], _EXPECTED_TO_DEFAULT)


def noise_to_default(trials: Iterable[Trial]) -> float:
    """Return the standard deviation of ln(candidate / default) of one round, over all workloads."""
    groups = [[one.to_default for one in trial.rounds] for trial in trials if trial.rounds]
    return _pooled(groups, _EXPECTED_TO_DEFAULT)


def _pooled(groups: Sequence[Sequence[float]], expected: float) -> float:
    squares, freedom = _WEIGHT * expected**2, _WEIGHT
    for group in groups:
        mean = sum(group) / len(group)
        squares += sum((value - mean) ** 2 for value in group)
        freedom += len(group) - 1
    return math.sqrt(squares / freedom)


def _against_default(trials: Sequence[Trial]) -> list[list[float]]:
    """Return repeated measurements of candidates and of incumbents, each against the default."""
    incumbents: dict[int, list[float]] = defaultdict(list)
    for trial in trials:
        if trial.incumbent is not None:
            incumbents[trial.incumbent] += [one.incumbent_to_default for one in trial.rounds]
    candidates = [_leads(one) for one in trials if one.incumbent is None]
    return [group for group in (*candidates, *incumbents.values()) if len(group) > 1]


def _leads(trial: Trial) -> list[float]:
    return [one.to_incumbent for one in trial.rounds]


def lost_in_noise(trials: Sequence[Trial]) -> LostInNoise | None:
    """Return the noise if no trial is distinguishable from the default; None if one is, or without rounds."""
    means = {one.number: one.gain for one in trials if one.rounds and one.gain is not None}
    if not means:
        return None
    noise, rounds = noise_to_default(trials), {one.number: len(one.rounds) for one in trials}
    if any(abs(mean) > half_width(rounds[number], noise, WRONGLY_WON) for number, mean in means.items()):
        return None
    wanted = max(_LEAST_WANTED, *means.values())
    needed = math.ceil((_STANDARD_ERRORS * noise / wanted) ** 2)
    return LostInNoise(
        noise, half_width(MOST_ROUNDS, noise, WRONGLY_WON), wanted, max(_FEWEST_ROUNDS, needed)
    )
