"""The noise of one round of a trial, pooled over all trials of a search. Pure.

The variance of a candidate's rounds about their mean, over all candidates, has enough degrees of freedom for
the next one to be judged after its first round, where its own rounds alone could say nothing. The incumbent's
rounds beside the default would add many more, and are left out once there are others: two servers that are
tuned alike have their noise in common, a tuned one and the default do not (measured: 1 % and 4 %).

Rounds that would show what is lost in the noise:

    symbol  meaning                                                              unit
    σ       noise of one round, of ln(candidate / default)                       1
    e       gain to be shown: the largest mean so far, 2 % at least              1
    n       rounds of a proof whose 95 % interval excludes 0 in four of five     rounds

A mean of n rounds has the standard error σ/√n. Its interval reaches 1.96 of these to each side, and four of
five means lie no more than 0.84 of them below the truth: n = ((1.96 + 0.84) σ / e)².
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgdyno.model.tuning.tuning import Trial
from pgdyno.tune.search.race import MOST_ROUNDS, WRONGLY_WON, half_width

SIDE_BY_SIDE = 0.01  # a guess for the beginning; measured on a machine with two CPUs: 0.005 … 0.015
ONE_AFTER_THE_OTHER = 0.04  # arbitrary, of whole trials of 10 s: four times as much; not measured
_EXPECTED_BESIDE_THE_DEFAULT = 0.04  # measured there
_WEIGHT = 3.0  # of the guess, in degrees of freedom
_ENOUGH = 4  # degrees of freedom of candidates that took several rounds
_LEAST_WANTED = math.log(1.02)  # what is worth a restart of a server
_STANDARD_ERRORS = 1.96 + 0.84
_FEWEST_ROUNDS = 5  # of a proof


@dataclass(frozen=True)
class LostInNoise:
    """Noise that hides all effects so far. All but ``rounds`` are logarithms of ratios of throughput.

    A configuration's rounds show gains from ``least_gain`` on; a proof of ``wanted`` takes ``rounds``.
    """

    noise: float
    least_gain: float
    wanted: float
    rounds: int


def noise_of(trials: Iterable[Trial], expected: float = SIDE_BY_SIDE) -> float:
    """Return the standard deviation of ln(candidate / incumbent) of one round."""
    tried = list(trials)
    alike = [_leads(one) for one in tried if one.incumbent is not None and len(one.rounds) > 1]
    if sum(len(group) - 1 for group in alike) >= _ENOUGH:
        return _pooled(alike, expected)
    return _pooled([*alike, *_beside_the_default(tried)], expected)


def noise_on(trials: Iterable[Trial], workload: str) -> float:
    """Return the standard deviation of ln(candidate / default) of one round on one workload."""
    groups: dict[tuple[str, int], list[float]] = defaultdict(list)
    for trial in trials:
        found = [one.by_workload[workload] for one in trial.rounds if workload in one.by_workload]
        groups["candidate", trial.number] += [one.to_default for one in found]
        if trial.incumbent is not None:
            groups["incumbent", trial.incumbent] += [one.incumbent_to_default for one in found]
    return _pooled([group for group in groups.values() if group], _EXPECTED_BESIDE_THE_DEFAULT)


def noise_to_default(trials: Iterable[Trial]) -> float:
    """Return the standard deviation of ln(candidate / default) of one round, over all workloads."""
    groups = [[one.to_default for one in trial.rounds] for trial in trials if trial.rounds]
    return _pooled(groups, _EXPECTED_BESIDE_THE_DEFAULT)


def _pooled(groups: Sequence[Sequence[float]], expected: float) -> float:
    squares, freedom = _WEIGHT * expected**2, _WEIGHT
    for group in groups:
        mean = sum(group) / len(group)
        squares += sum((value - mean) ** 2 for value in group)
        freedom += len(group) - 1
    return math.sqrt(squares / freedom)


def _beside_the_default(trials: Sequence[Trial]) -> list[list[float]]:
    """Return repeated measurements: of candidates and of incumbents, each beside the default."""
    incumbents: dict[int, list[float]] = defaultdict(list)
    for trial in trials:
        if trial.incumbent is not None:
            incumbents[trial.incumbent] += [one.incumbent_to_default for one in trial.rounds]
    candidates = [_leads(one) for one in trials if one.incumbent is None]
    return [group for group in (*candidates, *incumbents.values()) if len(group) > 1]


def _leads(trial: Trial) -> list[float]:
    return [one.to_incumbent for one in trial.rounds]


def lost_in_noise(trials: Sequence[Trial]) -> LostInNoise | None:
    """Return the noise if no trial is told from the default; None if one is, or none has a figure."""
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
