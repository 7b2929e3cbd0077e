"""The steps of a search: trials until its time is over, then shortening of the winner.

They are the same on scratch servers and on running ones, which differ in how a round is measured.

Shortening removes changes that do not pay, measured against the winner. The half of the changes with the
smallest estimated gains is removed at once. If the rest is as fast as the winner, they stay removed;
otherwise half of these are tried, down to single changes. Each attempt is compared with the *original*
winner, never with the previous attempt: small losses would otherwise add up unnoticed. "As fast" is shown,
not assumed: on every workload the lower bound of the ratio has to be above 1 - 2 %, from rounds of this
attempt only (``race.py`` has the bound, which is valid after every round). All bounds have to hold
simultaneously, so no correction is needed (intersection-union: Berger 1982, Technometrics 24, 295-300).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeAlias

from pgdyno.base import numbers
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.plans.plan import Plan
from pgdyno.model.tuning.tuning import Point, Removal, Trial, TrialState, Tuning
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.store.tunings import save_tuning
from pgdyno.tune.earlier_configurations import FirstPoints
from pgdyno.tune.search.additive import least_first
from pgdyno.tune.search.race import MOST_ROUNDS, LostInNoise, half_width, lost_in_noise, noise_of
from pgdyno.tune.search.samplers import load as load_samplers
from pgdyno.tune.search.samplers._contract import Sampler
from pgdyno.tune.search.searching import CandidateFailedError, ForTheTop, IsOver, WhyNot, never, search
from pgdyno.tune.searched_space import Searched
from pgdyno.tune.trial_rounds import TrialRounds
from pgdyno.tune.tune_request import SEARCH_SHARE, SHORTEN_SHARE, TuneRequest

NOISE_NOTE = "the noise is larger than any effect"
"""The beginning of the note."""
_MOST_MINUTES = 180  # beyond, hours


@dataclass(frozen=True)
class Tuned:
    """The result: the search with its answer, the initial plan, and the proof.

    ``experiment`` None: nothing faster than the default was found.
    """

    tuning: Tuning
    plan: Plan
    experiment: Experiment | None


class Listener(Protocol):
    """Receives the events of a search."""

    def tried(self, trial: Trial) -> None:
        """Handle a finished trial."""
        ...

    def noted(self, note: str) -> None:
        """Handle a note made during the search."""
        ...

    def left_out(self, removal: Removal) -> None:
        """Handle an attempt to shorten the answer."""
        ...

    def answered(self, tuning: Tuning) -> None:
        """Handle the answer, before it is proven."""
        ...


@dataclass(frozen=True)
class Tuner:
    """Runs the rounds of candidates, then those of the winner without some of its changes."""

    request: TuneRequest
    searched_space: Searched
    rounds: TrialRounds
    listener: Listener
    began: float

    def searched(self, tuning: Tuning) -> Tuning:
        """Return the search with more trials, until its time is over; at least one round is measured."""
        sampler: Sampler = load_samplers()[tuning.sampler].make(tuning.space, tuning.seed)
        if first := self.searched_space.first:
            sampler = FirstPoints(sampler, [one for one in (tuning.space.plan, *first) if one])

        def keep(trial: Trial) -> None:
            save_tuning(searches(), replace(tuning, trials=(*tuning.trials, trial)))

        if tuning.trials and self._is_enough(tuning):
            return tuning
        trials = search(
            sampler,
            self.rounds.trial,
            keep,
            self.searched_space.why_not,
            tuning.trials,
            lambda: self._is_over(SEARCH_SHARE),
            race=ForTheTop(self.rounds.expected_noise),
        )
        began, rounds = time.monotonic(), 0
        for trial in trials:
            tuning = replace(tuning, trials=(*tuning.trials, trial))
            self.listener.tried(trial)
            if trial.rounds:
                rounds += len(trial.rounds)
                tuning = self._with_noise(tuning, (time.monotonic() - began) / rounds)
            if self._is_enough(tuning):
                break
        return tuning

    def _with_noise(self, tuning: Tuning, round_s: float) -> Tuning:
        """Return the search with a note, also reported at once, if noise hides all effects; only once."""
        lost = lost_in_noise(tuning.trials)
        if lost is None or any(note.startswith(NOISE_NOTE) for note in tuning.notes):
            return tuning
        note = noise_note(lost, tuning.trials[-1].number, round_s)
        self.listener.noted(note)
        return replace(tuning, notes=(*tuning.notes, note))

    def shortened(self, tuning: Tuning) -> Tuning:
        """Return the search with its answer: the winner without changes that do not pay."""
        winner = tuning.winner
        if winner is None:
            return tuning
        order = least_first(tuning.space, tuning.trials, winner.point)
        tuning = replace(tuning, removals=(), answer=winner.point)
        noise, why_not = noise_of(tuning.trials, self.rounds.expected_noise), self.searched_space.why_not
        removals = shorten(
            winner.point, order, self.rounds.pair, noise, why_not, lambda: self._is_over(SHORTEN_SHARE)
        )
        for removal in removals:
            tuning = replace(tuning, removals=(*tuning.removals, removal))
            tuning = replace(tuning, answer=remaining(winner.point, tuning.removals))
            save_tuning(searches(), tuning)
            self.listener.left_out(removal)
        return replace(tuning, answer=self.rounds.settled(tuning.answer)) if tuning.answer else tuning

    @property
    def left_s(self) -> float:
        """The remaining time of the budget; negative if it was exceeded."""
        return self.request.budget_s - (time.monotonic() - self.began)

    def _is_enough(self, tuning: Tuning) -> bool:
        measured = sum(one.state is not TrialState.REFUSED for one in tuning.trials)
        wanted = self.request.most_trials
        return self._is_over(SEARCH_SHARE) or (wanted is not None and measured >= wanted)

    def _is_over(self, share: float) -> bool:
        return time.monotonic() - self.began > share * self.request.budget_s


def searches() -> Path:
    """Return the directory of the records of searches."""
    return workspace().experiments()


def disturbance_notes(count: int) -> tuple[str, ...]:
    """Return a note on the number of disturbed rounds; empty without any."""
    if not count:
        return ()
    rounds = "1 round" if count == 1 else f"{count} rounds"
    return (f"used although disturbed (an experiment would not count them): {rounds} of the search",)


def noise_note(lost: LostInNoise, trial: int, round_s: float) -> str:
    """Return the note after a trial, with the budget needed to show the gain; a round takes ``round_s``."""
    minutes = math.ceil(lost.rounds * round_s / (1 - SHORTEN_SHARE) / 60)
    budget = f"{minutes}m" if minutes <= _MOST_MINUTES else f"{math.ceil(minutes / 60)}h"
    return (
        f"{NOISE_NOTE} up to trial {trial}: two rounds of one configuration differ by "
        f"{numbers.share(math.expm1(lost.noise), 1)} (standard deviation), so {MOST_ROUNDS} rounds show only "
        f"gains above {numbers.share(math.expm1(lost.least_gain), 1)}; to prove "
        f"{numbers.change(math.exp(lost.wanted))} takes about --budget {budget}, less on a quieter machine"
    )


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
