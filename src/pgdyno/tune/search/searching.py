"""The search: get a point from a sampler, race it against the incumbent, return the result to it. Pure.

    sampler ─▶ point ─▶ rounds of [default, incumbent, candidate] ─▶ won, lost, close or failed ─▶ sampler
                              ▲                                │
                              └──── another round, unless ─────┘

A search starts from given trials: an interrupted search is resumed by passing them to the sampler again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeAlias

from pgdyno.model.tuning.tuning import Point, Trial, TrialRound, TrialState
from pgdyno.tune.search.race import MOST_ROUNDS, SIDE_BY_SIDE, OnWorkload, noise_of, noise_on, standing
from pgdyno.tune.search.samplers._contract import Sampler


class CandidateFailedError(Exception):
    """A candidate's server did not start, or crashed; the search continues without it."""

    state = TrialState.FAILED


class CandidateOverLimitError(CandidateFailedError):
    """A candidate's trial was stopped because it exceeded a limit; the search continues without it."""

    state = TrialState.OVER_LIMIT


class MeasureRound(Protocol):
    """Measures one round of the default, the incumbent and the candidate."""

    def __call__(self, incumbent: Point, candidate: Point) -> TrialRound:
        """Return the round's means. Raises: CandidateFailedError."""
        ...


class Race(Protocol):
    """Selects the incumbent of a trial, and judges the trial."""

    def incumbent(self, trials: Sequence[Trial]) -> Trial | None:
        """Return the trial to compare with; None: only the default."""
        ...

    def judged(self, trial: Trial, earlier: Sequence[Trial]) -> Trial:
        """Return a trial with its state after its rounds so far."""
        ...


@dataclass(frozen=True)
class ForTheTop:
    """The race for throughput: against the best so far, without a large loss on any workload.

    ``expected_noise`` is the assumed noise of one round, until it has been measured.
    """

    expected_noise: float = SIDE_BY_SIDE

    def incumbent(self, trials: Sequence[Trial]) -> Trial | None:
        """Return the last trial that won."""
        return next((one for one in reversed(trials) if one.state is TrialState.WON), None)

    def judged(self, trial: Trial, earlier: Sequence[Trial]) -> Trial:
        """Return a trial with its state after its rounds so far."""
        trials = [*earlier, trial]
        state = standing([one.to_incumbent for one in trial.rounds], noise_of(trials, self.expected_noise))
        if state is TrialState.LOST:
            return replace(trial, state=state)
        found = {
            name: OnWorkload(
                [one.by_workload[name].to_default for one in trial.rounds], noise_on(trials, name)
            )
            for name in trial.rounds[0].by_workload
        }
        if slower := [name for name, one in found.items() if one.is_slower]:
            return replace(trial, state=TrialState.LOST, reason=f"slower on {', '.join(slower)}")
        is_open = any(one.seems_slower for one in found.values()) and len(trial.rounds) < MOST_ROUNDS
        return replace(trial, state=TrialState.RUNNING if is_open else state)


_TOP = ForTheTop()
_DEFAULT = Trial(0, {}, None, (TrialRound(0.0, 0.0, 0.0),), TrialState.CLOSE)
_MOST_REPEATED = 100  # consecutive points tried before or refused: the space is exhausted

Keep: TypeAlias = Callable[[Trial], None]
"""Stores a trial: after each of its rounds, and at its end."""
WhyNot: TypeAlias = Callable[[Point], str]
"""Returns why a point must not be tried; empty if it may."""
IsOver: TypeAlias = Callable[[], bool]
"""Whether the time is over: no further round may begin."""


def never() -> bool:
    """Return False: the time is never over."""
    return False


def search(  # noqa: PLR0913 — the race is keyword-only, and usually omitted
    sampler: Sampler,
    measure: MeasureRound,
    keep: Keep,
    why_not: WhyNot,
    earlier: Sequence[Trial] = (),
    is_over: IsOver = never,
    *,
    race: Race = _TOP,
) -> Iterator[Trial]:
    """Yield finished trials; the caller decides when to stop.

    The first round of a trial is always measured; no further one begins once the time is over: the trial then
    ends in its current state.

    A point that was tried before is not measured again: the sampler gets the earlier result. The search ends
    once the sampler has no new points.
    """
    trials = list(earlier)
    for trial in trials:
        sampler.tell(trial)
    repeated = 0  # consecutive points without a measurement
    while repeated < _MOST_REPEATED:
        point = sampler.ask()
        winner = race.incumbent(trials)
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
            incumbent = {} if winner is None else winner.point
            for ended in _raced(begun, incumbent, partial(race.judged, earlier=trials), measure, is_over):
                keep(ended)
        trials.append(ended)
        sampler.tell(ended)
        yield ended


def _raced(
    trial: Trial, incumbent: Point, judged: Callable[[Trial], Trial], measure: MeasureRound, is_over: IsOver
) -> Iterator[Trial]:
    """Yield a trial after each of its rounds, until it ends."""
    while trial.state is TrialState.RUNNING:
        try:
            one = measure(incumbent, trial.point)
        except CandidateFailedError as error:
            trial = replace(trial, state=error.state, reason=str(error))
        else:
            trial = replace(trial, rounds=(*trial.rounds, one))
            trial = judged(trial)
            if trial.state is TrialState.RUNNING and is_over():
                trial = replace(trial, state=TrialState.CLOSE)
        yield trial


def _known(trials: Sequence[Trial], point: Point) -> Trial | None:
    return next((one for one in trials if one.point == point), None)
