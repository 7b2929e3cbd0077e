"""Choose the cells of a grid for the next round, to find knees in few trials.

The first five rounds take levels that are far apart; later ones those that are still in question, and what
lies between them (``stats/curves/levels.py``). Once the knee of a curve is known, it is measured beside
the best level and its neighbours until the time is over, for rounds that had no part in the choice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.measure.verdicts.scaling import MeasuredCurve, measured_curves
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.stats.curves.levels import ENOUGH, first_levels, next_levels
from pgdyno.stats.curves.scaling import observe


def next_cells(experiment: Experiment, rounds_left: int) -> tuple[str, ...]:
    """Return the names of the cells to measure next, a few of every curve."""
    return tuple(name for curve in measured_curves(experiment) for name in _names(curve, rounds_left))


def _names(curve: MeasuredCurve, rounds_left: int) -> Iterator[str]:
    levels = _next(curve, rounds_left)
    return (name for name, level in curve.levels.items() if level in levels)


def _next(curve: MeasuredCurve, rounds_left: int) -> Sequence[int]:
    candidates, rounds = sorted(set(curve.levels.values())), curve.rounds
    first = first_levels(candidates)
    if len(rounds) < ENOUGH or len({level for rates in rounds for level in rates}) < 2:
        return first
    found = observe(rounds)
    if in_question := next_levels(candidates, found, rounds_left):
        return in_question
    knee, levels = found.knee.low, [one.level for one in found.levels]
    below = max((level for level in levels if level < knee), default=knee)
    above = min((level for level in levels if level > knee), default=knee)
    return (below, knee, above, found.best)
