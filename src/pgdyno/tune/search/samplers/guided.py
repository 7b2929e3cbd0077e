"""The plan first, then the neighbours of the best point that look most promising by an additive model.

Each point is the incumbent with the few changes that are best in one draw of their effects from the posterior
(Thompson sampling): an uncertain change is tried in proportion to its probability of being the best. With few
changes per trial, its result can be attributed to them.

Sources: Thompson (1933), Biometrika 25, 285-294; Russo et al. (2018), A Tutorial on Thompson Sampling,
arXiv:1707.02038, §4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.random import Generator as Random

from pgdyno.model.tuning.tuning import Dimension, Point, Space, Trial, TrialState
from pgdyno.tune.search.additive import effects_of

NAME = "guided"
_MOST_CHANGES = 3  # of one point, from the incumbent
_MOST_DRAWS, _WIDER = 50, 1.3  # draws until a point is new, each from a wider distribution


@dataclass
class _Guided:
    space: Space
    random: Random
    trials: list[Trial] = field(default_factory=list)

    def ask(self) -> Point:
        """Return the plan, or the incumbent with a few changes."""
        plan = self.space.plan
        if plan and not self.trials:
            return plan
        effects, known = effects_of(self.space, self.trials), [one.point for one in self.trials]
        for draw in range(_MOST_DRAWS):
            covariance = effects.covariance * _WIDER**draw
            drawn = self.random.multivariate_normal(effects.mean, covariance, method="cholesky")
            by_pair = dict(zip(effects.pairs, map(float, drawn), strict=True))
            point = _changed(self._incumbent, _best_changes(self.space, self._incumbent, by_pair))
            if point and point not in known:
                break
        return point

    def tell(self, trial: Trial) -> None:
        """Record the trial, unless it is known."""
        if trial not in self.trials:
            self.trials.append(trial)

    @property
    def _incumbent(self) -> Point:
        won = [one.point for one in self.trials if one.state is TrialState.WON]
        return won[-1] if won else {}


def _best_changes(
    space: Space, incumbent: Point, effects: Mapping[tuple[str, str], float]
) -> dict[str, str | None]:
    """Return the best few changes of the incumbent by these effects; at least one."""
    improvements = {
        (one.key, value): gain
        for one in space.dimensions
        for value, gain in [_best_value(one, incumbent.get(one.key), effects)]
    }
    best = sorted(improvements, key=improvements.__getitem__, reverse=True)
    return dict([change for change in best if improvements[change] > 0][:_MOST_CHANGES] or best[:1])


def _best_value(
    dimension: Dimension, present: str | None, effects: Mapping[tuple[str, str], float]
) -> tuple[str | None, float]:
    """Return the best value of a dimension except its present one, and its gain over that."""
    others: dict[str | None, float] = {value: effects[dimension.key, value] for value in dimension.values}
    others[None] = 0.0
    now = others.pop(present)
    best = max(others, key=others.__getitem__)
    return best, others[best] - now


def _changed(point: Point, changes: Mapping[str, str | None]) -> Point:
    both = {**point, **changes}
    return {key: value for key, value in both.items() if value is not None}


def make(space: Space, seed: int) -> _Guided:
    """Return the sampler."""
    return _Guided(space, np.random.default_rng(seed))
