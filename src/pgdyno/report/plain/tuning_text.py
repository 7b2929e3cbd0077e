"""A search as text: its trials line by line, and its answer."""

from __future__ import annotations

import math
from collections.abc import Iterator

from pgdyno.model import numbers
from pgdyno.model.hosts.kernel_file import display_name
from pgdyno.model.tuning.space import Point
from pgdyno.model.tuning.tuning import Removal, Trial, TrialState, Tuning

_ENDED = {
    TrialState.WON: "the best so far",
    TrialState.LOST: "slower than the best",
    TrialState.CLOSE: "not told from the best",
}
_SHOWN_CHANGES = 4


def trial_line(trial: Trial) -> str:
    """Return one line about a trial that has ended."""
    point = _point(trial.point, _SHOWN_CHANGES)
    if trial.gain is None:
        return f"trial {trial.number}: {trial.state.value}: {trial.reason}"
    rounds = f"{len(trial.rounds)} round{'s' * (len(trial.rounds) > 1)}"
    gain = numbers.change(math.exp(trial.gain))
    return f"trial {trial.number}: {gain} over the default, {_ENDED[trial.state]} ({rounds}): {point}"


def removal_line(removal: Removal) -> str:
    """Return one line about an attempt to make the answer shorter."""
    names = ", ".join(map(display_name, removal.keys))
    outcome = "left out" if removal.is_kept else "kept"
    ratio = "" if removal.ratio is None else f": {numbers.change(removal.ratio[0])} without"
    return f"{outcome}{ratio} {names}"


def tuning_text(tuning: Tuning) -> str:
    """Return the answer, with how it was found."""
    return "".join(f"{line}\n" for line in _lines(tuning))


def _lines(tuning: Tuning) -> Iterator[str]:
    tried = sum(bool(one.rounds) for one in tuning.trials)
    yield ""
    yield f"Search {tuning.id}: {tried} of {tuning.space.points:,} configurations tried."
    winner = tuning.winner
    if winner is None:
        yield "None was faster than the configuration as found."
        return
    count, left = len(winner.point), len(winner.point) - len(tuning.answer)
    shorter = (
        f"Without {left} of them it is as fast; the answer:"
        if left
        else "None could be shown in the time to be without effect; the answer:"
    )
    yield f"The winner, trial {winner.number}, had {count} changes. {shorter}"
    for key, value in tuning.answer.items():
        yield f"  {display_name(key)} = {value}"
    yield from tuning.notes


def _point(point: Point, most: int) -> str:
    shown = [f"{display_name(key)}={value}" for key, value in point.items()]
    more = f" and {len(shown) - most} more" if len(shown) > most else ""
    return ", ".join(shown[:most]) + more
