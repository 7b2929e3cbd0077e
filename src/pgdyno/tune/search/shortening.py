"""Shorten the winner of a search: remove changes that do not pay, measured against the winner. Pure.

The half of the changes with the smallest estimated gains is removed at once. If the rest is as fast as the
winner, they stay removed; otherwise half of these are tried, down to single changes. Each attempt is compared
with the *original* winner, never with the previous attempt: small losses would otherwise add up unnoticed.
"As fast" is shown, not assumed: on every workload the lower bound of the ratio has to be above 1 - 2 %, from
rounds of this attempt only (``race.py`` has the bound, which is valid after every round). All bounds have to
hold simultaneously, so no correction is needed (intersection-union: Berger 1982, Technometrics 24, 295-300).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from pgdyno.model.tuning.space import Point
from pgdyno.model.tuning.tuning import Removal
from pgdyno.tune.search.race import half_width
from pgdyno.tune.search.searching import CandidateFailedError, IsOver, WhyNot, never

MARGIN = 0.02
_WRONG = 0.05  # probability of a wrong decision on one attempt
_MOST_ROUNDS = 8

MeasurePair: TypeAlias = Callable[[Point, Point], Sequence[float]]
"""Measures one round of the winner and of the remaining changes: ln(remaining / winner) by workload."""


def shorten(
    winner: Point,
    least_first: Sequence[str],
    measure: MeasurePair,
    noise: float,
    why_not: WhyNot,
    is_over: IsOver = never,
) -> Iterator[Removal]:
    """Yield attempts in order; once the time is over no further round begins, and doubtful changes are kept.

    ``least_first`` are the winner's keys, by increasing estimated gain. ``noise`` is that of a round's mean
    over the workloads. ``why_not`` returns why a point must not be tried.
    """
    remaining = dict(winner)
    waiting = [list(least_first)]
    while waiting and not is_over():
        group = waiting.pop(0)
        if len(group) > 1:
            half = (len(group) + 1) // 2
            group, rest = group[:half], group[half:]
            waiting.insert(0, rest)
        tried = {key: value for key, value in remaining.items() if key not in group}
        if why_not(tried):
            removal = Removal(tuple(group), is_kept=False, rounds=0, ratio=None)
        else:
            removal = _attempt(winner, tried, tuple(group), measure, noise, is_over)
        if removal.is_kept:
            remaining = tried
        elif len(group) > 1:
            waiting.insert(0, group)
        yield removal


def remaining(winner: Point, removals: Sequence[Removal]) -> Point:
    """Return the winner without the removed changes."""
    left_out = {key for one in removals if one.is_kept for key in one.keys}
    return {key: value for key, value in winner.items() if key not in left_out}


def _attempt(
    winner: Point,
    tried: Point,
    keys: tuple[str, ...],
    measure: MeasurePair,
    noise: float,
    is_over: IsOver,
) -> Removal:
    rounds = list[Sequence[float]]()
    while len(rounds) < _MOST_ROUNDS:
        try:
            rounds.append(measure(winner, tried))
        except CandidateFailedError:  # the server does not run without these changes
            return Removal(keys, is_kept=False, rounds=len(rounds), ratio=None)
        worst, half = _worst(rounds), half_width(len(rounds), _noise_on_one(noise, rounds), _WRONG)
        if worst - half > math.log(1 - MARGIN):
            return Removal(keys, is_kept=True, rounds=len(rounds), ratio=_ratio(worst, half))
        if worst + half < math.log(1 - MARGIN) or is_over():
            break
    return Removal(keys, is_kept=False, rounds=len(rounds), ratio=_ratio(worst, half))


def _worst(rounds: Sequence[Sequence[float]]) -> float:
    """Return the smallest mean over the rounds, of all workloads."""
    means: list[float] = [sum(of_workload) / len(rounds) for of_workload in zip(*rounds, strict=True)]
    return min(means)


def _noise_on_one(noise: float, rounds: Sequence[Sequence[float]]) -> float:
    """Return the noise on one workload: workloads run one at a time, so their noise is independent."""
    return noise * math.sqrt(len(rounds[0]))


def _ratio(mean: float, half: float) -> tuple[float, float, float]:
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)
