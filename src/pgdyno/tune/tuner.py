"""The steps of a search: trials until its time is over, then shortening of the winner.

They are the same on scratch servers and on running ones, which differ in how a round is measured.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from pgdyno.base import numbers
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.plans.plan import Plan
from pgdyno.model.tuning.tuning import Removal, Trial, TrialState, Tuning
from pgdyno.postgres.process.local_machine import workspace
from pgdyno.store.tunings import save_tuning
from pgdyno.tune.search.additive import least_first
from pgdyno.tune.search.noise import LostInNoise, lost_in_noise, noise_of
from pgdyno.tune.search.race import MOST_ROUNDS
from pgdyno.tune.search.samplers import load as load_samplers
from pgdyno.tune.search.samplers._contract import Sampler
from pgdyno.tune.search.searching import ForTheTop, search
from pgdyno.tune.search.shortening import remaining, shorten
from pgdyno.tune.search.warm_start import FirstPoints
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
