"""Make the winner of a search shorter: leave out changes that do not pay, measured against the winner.
Pure.

Half of the changes that seem to bring least are left out at once. If what remains is as fast as the winner,
they stay out; else half of these are tried, down to single ones. Each attempt is compared with the *original*
winner, never with the last attempt, so that small losses do not add up unseen. "As fast" is shown, not
assumed: on every workload the lower bound of the ratio has to be above 1 - 2 %, by rounds that only this
attempt has (``race.py`` has the bound, which may be looked at after each). All bounds have to hold together,
so that none is corrected for the others (intersection-union: Berger 1982, Technometrics 24, 295-300).
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
_WRONG = 0.05  # the chance of a wrong answer on one attempt
_MOST_ROUNDS = 8

MeasurePair: TypeAlias = Callable[[Point, Point], Sequence[float]]
"""Measures one round of the winner and of what remains: ln(remaining / winner) by workload."""


def shorten(
    winner: Point,
    least_first: Sequence[str],
    measure: MeasurePair,
    noise: float,
    why_not: WhyNot,
    is_over: IsOver = never,
) -> Iterator[Removal]:
    """Yield attempts in order; once time is over no further round begins, and changes in doubt are kept.

    ``least_first`` are the winner's keys, by what they seem to bring. ``noise`` is that of one round's mean
    over the workloads. ``why_not`` says why a point must not be tried.
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
        except CandidateFailedError:  # a server does not run without them
            return Removal(keys, is_kept=False, rounds=len(rounds), ratio=None)
        worst, half = _worst(rounds), half_width(len(rounds), _noise_on_one(noise, rounds), _WRONG)
        if worst - half > math.log(1 - MARGIN):
            return Removal(keys, is_kept=True, rounds=len(rounds), ratio=_ratio(worst, half))
        if worst + half < math.log(1 - MARGIN) or is_over():
            break
    return Removal(keys, is_kept=False, rounds=len(rounds), ratio=_ratio(worst, half))


def _worst(rounds: Sequence[Sequence[float]]) -> float:
    """Return the mean over the rounds on the workload where it is least."""
    means: list[float] = [sum(of_workload) / len(rounds) for of_workload in zip(*rounds, strict=True)]
    return min(means)


def _noise_on_one(noise: float, rounds: Sequence[Sequence[float]]) -> float:
    """Return the noise on one workload: workloads have theirs one after the other, each by itself."""
    return noise * math.sqrt(len(rounds[0]))


def _ratio(mean: float, half: float) -> tuple[float, float, float]:
    return math.exp(mean), math.exp(mean - half), math.exp(mean + half)
