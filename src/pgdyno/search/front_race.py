"""The race for several aims: whether a candidate is on the front of all trials so far. Pure.

Each candidate is measured beside the default. It is given up as soon as the default, or a trial on the front,
dominates it, by bounds that take little evidence: what is lost by that is one candidate. It ends on the front
once it is better for sure in some aim than the default and each of those, or when it had enough rounds and
was dominated by none.

    symbol  meaning                                                              unit
    g       mean gain of a trial in an aim, over n rounds, more is better        1
    h       how far g may be from the truth (``race.py``: may be looked at)      1

The gains of two trials a and b differ, surely or likely, if they do by more than √(h_a² + h_b²). Memory is
reckoned from the settings and has no noise; differences that would pass for equivalent do not count.

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
from pgdyno.stats.front import LIKELY, SURE, Told, alike, best_first, dominated, dominates, spread

MOST_MEMBERS = 6  # arbitrary: what a person still compares, and one duet still measures
_RECKONED_MARGIN = math.log(1.02)  # as Design.equivalence_margin
_MOST_ROUNDS = 3  # arbitrary: of one candidate; the proof has more
_RARELY, _OFTEN = 0.05, 0.5  # chances of a wrong answer, as in ``race.py``
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
        told = _told(trials, self.aims)
        better = next((one for one in others if dominates(told, one, name, LIKELY)), None)
        if better is not None:
            return replace(trial, state=TrialState.LOST, reason=f"{_named(better)} is better")
        has_place = all(SURE in told(name, one) for one in others)
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
    told = _told(trials, aims)
    off = dominated(best_first(gains), told)
    simplest_first = sorted(
        (name for name in gains if name not in off or name == _DEFAULT),
        key=lambda name: 0 if name == _DEFAULT else 1 + len(measured[name].point),
    )
    same = alike(simplest_first, told)
    left = {name: gains[name] for name in measured if name not in off and name not in same}
    return tuple(measured[name] for name in spread(left, MOST_MEMBERS))


def _told(trials: Sequence[Trial], aims: Sequence[Aim]) -> Told:
    """Return the comparison of trials by their numbers; of 0, the default."""
    by_name = {str(one.number): one for one in trials if one.by_aim}
    noises = {aim: noise_of_aim(by_name.values(), aim) for aim in aims}
    gains = {name: _gains(one, aims) for name, one in by_name.items()}
    gains[_DEFAULT] = tuple(0.0 for _ in aims)
    rounds = {name: len(one.rounds) for name, one in by_name.items()}

    def width(aim: Aim, alpha: float, *names: str) -> float:
        """Return how far the difference of two may be from the truth; the default has no error."""
        return math.hypot(
            *(half_width(rounds[name], noises[aim], alpha) for name in names if name != _DEFAULT)
        )

    def told(one: str, other: str) -> Sequence[int]:
        return [
            _sign(mine - theirs, aim, width(aim, _RARELY, one, other), width(aim, _OFTEN, one, other))
            for aim, mine, theirs in zip(aims, gains[one], gains[other], strict=True)
        ]

    return told


def _gains(trial: Trial, aims: Sequence[Aim]) -> tuple[float, ...]:
    return tuple(aim.gain(trial.by_aim[aim]) for aim in aims)


def _sign(difference: float, aim: Aim, sure: float, likely: float) -> int:
    """Return how surely a difference is none; ``sure`` and ``likely`` are how far it may be off."""
    if aim.metric is None:
        sure = likely = _RECKONED_MARGIN
    size = SURE if abs(difference) > sure else LIKELY if abs(difference) > likely else 0
    return size if difference > 0 else -size


def _named(name: str) -> str:
    return "the default" if name == _DEFAULT else f"trial {name}"
