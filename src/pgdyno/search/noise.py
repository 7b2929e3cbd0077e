"""The noise of one round of a trial, pooled over all trials of a search. Pure.

The variance of a candidate's rounds about their mean, and that of the incumbent against the default about its
own mean for as long as it is the incumbent, are of the same kind: two servers side by side in one round.
Together they have enough degrees of freedom for a candidate to be judged after its first round, where its own
rounds alone could say nothing.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from pgdyno.model.tuning.tuning import Trial

_EXPECTED = 0.01  # a guess for the beginning; measured on a machine with two CPUs: 0.005 … 0.015
_WEIGHT = 3.0  # of the guess, in degrees of freedom


def noise_of(trials: Iterable[Trial]) -> float:
    """Return the standard deviation of ln(candidate / incumbent) of one round."""
    squares, freedom = _WEIGHT * _EXPECTED**2, _WEIGHT
    for group in _repeated(list(trials)):
        mean = sum(group) / len(group)
        squares += sum((value - mean) ** 2 for value in group)
        freedom += len(group) - 1
    return math.sqrt(squares / freedom)


def _repeated(trials: Sequence[Trial]) -> list[list[float]]:
    """Return repeated measurements: of each candidate, and of each incumbent with the default."""
    incumbents: dict[int | None, list[float]] = defaultdict(list)
    for trial in trials:
        incumbents[trial.incumbent] += [one.incumbent_to_default for one in trial.rounds]
    candidates = [[one.to_incumbent for one in trial.rounds] for trial in trials]
    return [group for group in (*candidates, *incumbents.values()) if len(group) > 1]
