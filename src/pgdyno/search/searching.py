"""The search: ask a sampler for a point, race it against the incumbent, tell the sampler. Pure.

    sampler ─▶ point ─▶ rounds of [default, incumbent, candidate] ─▶ won, lost, close or failed ─▶ sampler
                              ▲                                │
                              └──── another round, unless ─────┘

A search goes on from the trials that it is given, so that an interrupted one is taken up by telling them
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

from pgdyno.model.tuning.space import Point
from pgdyno.model.tuning.tuning import Trial, TrialRound, TrialState
from pgdyno.search.noise import noise_of
from pgdyno.search.race import standing
from pgdyno.search.samplers._contract import Sampler


class CandidateFailedError(Exception):
    """A candidate's server did not start, or died; the search goes on without it."""


class MeasureRound(Protocol):
    """Measures one round of the default, the incumbent and the candidate."""

    def __call__(self, incumbent: Point, candidate: Point) -> TrialRound:
        """Return the round's means. Raises: CandidateFailedError."""
        ...


_DEFAULT = Trial(0, {}, None, (TrialRound(0.0, 0.0, 0.0),), TrialState.CLOSE)
_MOST_REPEATED = 100  # points in a row that were tried before, or may not be: the space is small

Keep: TypeAlias = Callable[[Trial], None]
"""Stores a trial: after each of its rounds, and when it has ended."""
WhyNot: TypeAlias = Callable[[Point], str]
"""Says why a point must not be tried; nothing if it may."""


def search(
    sampler: Sampler,
    measure: MeasureRound,
    keep: Keep,
    why_not: WhyNot,
    earlier: Sequence[Trial] = (),
) -> Iterator[Trial]:
    """Yield ended trials; who iterates decides when time is over.

    A point that was tried before is not tried again: the sampler is told at once what it gave. The search
    ends by itself once the sampler has nothing else to offer.
    """
    trials = list(earlier)
    for trial in trials:
        sampler.tell(trial)
    repeated = 0  # points in a row of which nothing was measured
    while repeated < _MOST_REPEATED:
        point = sampler.ask()
        winner = _winner(trials)
        if (known := _known([_DEFAULT, *trials], point)) is not None:
            sampler.tell(known)
            repeated += 1
            continue
        begun = Trial(len(trials) + 1, point, None if winner is None else winner.number)
        if reason := why_not(point):
            ended = replace(begun, state=TrialState.REFUSED, reason=reason)
            keep(ended)
            repeated += 1
        else:
            repeated = 0
            ended = _raced(begun, {} if winner is None else winner.point, trials, measure, keep)
        trials.append(ended)
        sampler.tell(ended)
        yield ended


def _raced(
    trial: Trial, incumbent: Point, earlier: Sequence[Trial], measure: MeasureRound, keep: Keep
) -> Trial:
    while trial.state is TrialState.RUNNING:
        try:
            one = measure(incumbent, trial.point)
        except CandidateFailedError as error:
            trial = replace(trial, state=TrialState.FAILED, reason=str(error))
        else:
            trial = replace(trial, rounds=(*trial.rounds, one))
            noise = noise_of([*earlier, trial])
            trial = replace(trial, state=standing([one.to_incumbent for one in trial.rounds], noise))
        keep(trial)
    return trial


def _winner(trials: Sequence[Trial]) -> Trial | None:
    return next((one for one in reversed(trials) if one.state is TrialState.WON), None)


def _known(trials: Sequence[Trial], point: Point) -> Trial | None:
    return next((one for one in trials if one.point == point), None)
