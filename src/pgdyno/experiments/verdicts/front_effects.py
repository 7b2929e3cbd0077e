"""The front of a search by its proof: effects of its members, and who is left. Pure.

All members stand in the same blocks, so that two of them are compared within these, with no default between
them. A member is left out if it is in no aim told from a configuration with fewer changes, the default and
the plan among them, or if another one dominates it (``stats/front.py``). Each comparison has the experiment's
level by itself, and a difference that is shown to be within the margin of equivalence does not count. Memory
is reckoned from the settings: its effect has no width.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from pgdyno.experiments.verdicts.contrasts import mean_contrast_intervals
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.verdict import Interval
from pgdyno.model.plans.terms import PLAN
from pgdyno.model.tuning.aims import Aim
from pgdyno.model.tuning.space import Point
from pgdyno.model.tuning.tuning import Tuning
from pgdyno.stats.front import alike, best_first, dominated


@dataclass(frozen=True)
class MemberEffects:
    """A configuration's ratios to the default by aim, means over the workloads.

    ``like`` is a configuration with fewer changes that it is in no aim told from, ``worse_than`` one that
    dominates it; None: there is none.
    """

    name: str
    effects: Mapping[Aim, Interval]
    like: str | None = None
    worse_than: str | None = None

    @property
    def is_on_front(self) -> bool:
        """Whether it is left as a configuration to choose."""
        return self.like is None and self.worse_than is None


@dataclass(frozen=True)
class ProvenFront:
    """All members of a front and the plan that stood beside them."""

    aims: tuple[Aim, ...]
    level: float
    members: tuple[MemberEffects, ...]

    @property
    def left(self) -> tuple[MemberEffects, ...]:
        """The configurations to choose from."""
        return tuple(one for one in self.members if one.is_on_front)


def proven_front(tuning: Tuning, experiment: Experiment) -> ProvenFront | None:
    """Return the front of a search as this experiment proves it; None if it has none, or too few rounds."""
    points = _points(tuning, experiment)
    pairs = [*permutations([experiment.baseline, *points], 2)]
    found = {aim: _ratios(aim, pairs, experiment, tuning) for aim in tuning.aims}
    if not points or not all(found.values()):
        return None

    def told(one: str, other: str) -> Sequence[int]:
        margin = experiment.design.equivalence_margin
        return [_sign(aim, ratios[one, other], margin) for aim, ratios in found.items()]

    sizes = {experiment.baseline: 0, **{name: 1 + len(point) for name, point in points.items()}}
    same = alike(sorted(sizes, key=sizes.__getitem__), told)
    gains = {
        name: tuple(_gain(aim, ratios, name, experiment.baseline) for aim, ratios in found.items())
        for name in sizes
        if name not in same
    }
    off = dominated(best_first(gains), told)
    members = tuple(
        MemberEffects(
            name,
            {aim: ratios[name, experiment.baseline] for aim, ratios in found.items()},
            same.get(name),
            off.get(name),
        )
        for name in points
    )
    return ProvenFront(tuning.aims, experiment.design.level, members)


def _points(tuning: Tuning, experiment: Experiment) -> dict[str, Point]:
    """Return the configurations that were measured beside the default, by name."""
    arms = {one.name for one in experiment.variants}
    points = {one.name: one.point for one in tuning.members if one.name in arms}
    return {**points, PLAN: tuning.space.whole(tuning.space.plan)} if points and PLAN in arms else points


def _ratios(
    aim: Aim, pairs: Sequence[tuple[str, str]], experiment: Experiment, tuning: Tuning
) -> dict[tuple[str, str], Interval]:
    """Return the ratio of each pair in an aim; nothing if too few rounds count."""
    if aim.metric is None:
        return _reckoned(aim, pairs, experiment, tuning)
    names = {pair: " over ".join(pair) for pair in pairs}
    weights = {name: {pair[0]: 1.0, pair[1]: -1.0} for pair, name in names.items()}
    known = mean_contrast_intervals(experiment, weights, metric=aim.metric)
    return {pair: known[name] for pair, name in names.items()} if known else {}


def _reckoned(
    aim: Aim, pairs: Sequence[tuple[str, str]], experiment: Experiment, tuning: Tuning
) -> dict[tuple[str, str], Interval]:
    """Return the ratios of a reckoned aim, as the trials have recorded it."""
    trials = {one.number: one.by_aim for one in tuning.trials if one.by_aim}
    logs = {one.name: trials[one.trial][aim] for one in tuning.members}
    planned = next((one.by_aim for one in tuning.trials if one.point == tuning.space.plan), {})
    logs |= {PLAN: planned.get(aim, 0.0), experiment.baseline: 0.0}
    ratios = {(one, other): math.exp(logs[one] - logs[other]) for one, other in pairs}
    return {pair: Interval(ratio, ratio, ratio, experiment.design.level) for pair, ratio in ratios.items()}


def _sign(aim: Aim, ratio: Interval, margin: float) -> int:
    """Return the better one of two, if it is for sure; an interval within the margin says they are alike."""
    if ratio.low >= 1 / (1 + margin) and ratio.high <= 1 + margin:
        return 0
    direction = 1 if aim.gain(1.0) > 0 else -1
    return direction * ((ratio.low > 1) - (ratio.high < 1))


def _gain(aim: Aim, ratios: Mapping[tuple[str, str], Interval], name: str, baseline: str) -> float:
    return 0.0 if name == baseline else aim.gain(math.log(ratios[name, baseline].point))
