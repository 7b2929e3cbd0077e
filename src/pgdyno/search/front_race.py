"""The race for several aims: whether a candidate is on the front of all trials so far. Pure.

Each candidate is measured beside the default. It is given up as soon as the default, or a trial on the front,
dominates it, by bounds that take little evidence: what is lost by that is one candidate. It ends on the front
once it is better for sure in some aim than the default and each of those, or when it had enough rounds and
was dominated by none.

    symbol  meaning                                                              unit
    g       mean gain of a trial in an aim, over n rounds, more is better        1
    h       how far g may be from the truth (``race.py``: may be looked at)      1

Two trials a and b differ if their gains do by more than √(h_a² + h_b²). What takes little evidence takes it
both ways: a trial dominates another only if it is not even likely to be worse in any aim. Memory is reckoned
from the settings and has no noise; differences that would pass for equivalent do not count.

Source: ``stats/front.py`` has dominance and its sources.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgdyno.model.tuning.aims import Aim
from pgdyno.model.tuning.tuning import Trial, TrialState
from pgdyno.search.noise import noise_of_aim
from pgdyno.search.race import half_width
from pgdyno.stats.front import Told, alike, best_first, dominated, dominates, spread

MOST_MEMBERS = 6  # arbitrary: what a person still compares, and one duet still measures
_RECKONED_MARGIN = math.log(1.02)  # as Design.equivalence_margin
_MOST_ROUNDS = 3  # arbitrary: of one candidate; the proof has more
_SURE, _LIKELY = 0.05, 0.5  # chances of a wrong answer, as in ``race.py``
_DEFAULT = "0"


@dataclass(frozen=True)
class ForTheFront:
    """The race for a place on the front."""

    aims: tuple[Aim, ...]

    def incumbent(self, trials: Sequence[Trial]) -> None:
        """Return nobody: a candidate is measured beside the default alone."""

    def judged(self, trial: Trial, earlier: Sequence[Trial]) -> Trial:
        """Return a trial with its state after its rounds so far."""
        name = str(trial.number)
        others = [_DEFAULT, *(str(one.number) for one in earlier if one.state is TrialState.WON)]
        trials = [*earlier, trial]
        likely, sure = (_told(trials, self.aims, alpha) for alpha in (_LIKELY, _SURE))
        better = next((one for one in others if dominates(likely, one, name)), None)
        if better is not None:
            return replace(trial, state=TrialState.LOST, reason=f"{_named(better)} is better")
        has_place = all(1 in sure(name, one) for one in others)
        is_on = has_place or len(trial.rounds) >= _MOST_ROUNDS
        return replace(trial, state=TrialState.WON if is_on else TrialState.RUNNING)


def front_of(trials: Sequence[Trial], aims: Sequence[Aim]) -> tuple[Trial, ...]:
    """Return the trials on the front, few and far from each other, the most different ones first.

    What is like the default, or like another one with fewer changes, is left out, and so is what the default
    dominates.
    """
    measured = {str(one.number): one for one in trials if one.by_aim}
    gains = {
        _DEFAULT: tuple(0.0 for _ in aims),
        **{name: _gains(one, aims) for name, one in measured.items()},
    }
    told = _told(trials, aims, _LIKELY)
    off = dominated(best_first(gains), told)
    simplest_first = sorted(
        (name for name in gains if name not in off or name == _DEFAULT),
        key=lambda name: 0 if name == _DEFAULT else 1 + len(measured[name].point),
    )
    same = alike(simplest_first, told)
    left = {name: gains[name] for name in measured if name not in off and name not in same}
    return tuple(measured[name] for name in spread(left, MOST_MEMBERS))


def _told(trials: Sequence[Trial], aims: Sequence[Aim], alpha: float) -> Told:
    """Return the comparison of trials by their numbers; of 0, the default, whose ratio to itself is exact."""
    by_name = {str(one.number): one for one in trials if one.by_aim}
    noises = {aim: noise_of_aim(by_name.values(), aim) for aim in aims}
    gains = {name: _gains(one, aims) for name, one in by_name.items()}
    gains[_DEFAULT] = tuple(0.0 for _ in aims)
    scales = {name: half_width(len(one.rounds), 1.0, alpha) for name, one in by_name.items()}
    scales[_DEFAULT] = 0.0

    def told(one: str, other: str) -> Sequence[int]:
        scale = math.hypot(scales[one], scales[other])
        return [
            _sign(mine - theirs, aim, scale * noises[aim])
            for aim, mine, theirs in zip(aims, gains[one], gains[other], strict=True)
        ]

    return told


def _gains(trial: Trial, aims: Sequence[Aim]) -> tuple[float, ...]:
    return tuple(aim.gain(trial.by_aim[aim]) for aim in aims)


def _sign(difference: float, aim: Aim, width: float) -> int:
    limit = _RECKONED_MARGIN if aim.metric is None else width
    return (difference > limit) - (difference < -limit)


def _named(name: str) -> str:
    return "the default" if name == _DEFAULT else f"trial {name}"
