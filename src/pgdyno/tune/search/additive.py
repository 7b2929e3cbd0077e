"""An additive model of trials: the effect of each value of each dimension, with its uncertainty. Pure.

    symbol  meaning                                                          shape     unit
    P       pairs of a key and one of its values                             ()        pairs
    T       trials                                                           ()        trials
    X       1 where the trial's point has the pair                           (T, P)    1
    y       gain of each trial: ln(throughput / default)                     (T,)      1
    β       effect of each pair, where y = X β + noise                       (P,)      1
    μ₀, τ   its prior: normal, mean and standard deviation                   (P,)      1

Logarithms of throughput are additive enough for two dozen trials to inform about fifty pairs; so few trials
allow no more flexible model. A priori the plan's values are expected to help a little, and all others to harm
a little, as most changes of a tuned configuration do. The prior of a dimension is wider if it could save a
larger share of time according to the profile.

Source: Bishop (2006), Pattern Recognition and Machine Learning, §3.3 (posterior of a linear model).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pgdyno.model.tuning.tuning import Point, Space, Trial, TrialState
from pgdyno.stats.sample import FloatArray

_EXPECTED = 0.01  # arbitrary: a planned value is expected to gain 1 %, any other to lose 1 %
_REACHED = 0.1  # arbitrary: the expected share of the largest saving of a change by the profile
_SPREAD = 0.03  # arbitrary: most values change throughput by less than 3 %
_MISFIT = 0.01  # arbitrary: model error of one gain, without noise
_ROUND_NOISE = 0.01  # of a gain from one round
_FAILURE = -0.5  # gain assigned to a server that did not start: all values involved look bad


@dataclass(frozen=True)
class Effects:
    """The posterior of β: normal. Shapes: mean (P,), covariance (P, P)."""

    pairs: tuple[tuple[str, str], ...]
    mean: FloatArray
    covariance: FloatArray


def effects_of(space: Space, trials: Sequence[Trial]) -> Effects:
    """Return the effects of all values, estimated from these trials."""
    pairs = tuple((one.key, value) for one in space.dimensions for value in one.values)
    worth = {one.key: one.worth for one in space.dimensions}
    prior = np.array(
        [
            _EXPECTED + worth[key] * _REACHED if space.plan.get(key) == value else -_EXPECTED
            for key, value in pairs
        ]
    )
    spread = {key: _SPREAD + share / 4 for key, share in worth.items()}
    precision = np.diag([spread[key] ** -2 for key, _ in pairs])
    weighted = precision @ prior
    for trial in trials:
        if trial.state is TrialState.REFUSED:
            continue
        gain = _FAILURE if trial.score is None else trial.score
        row = np.array([float(trial.point.get(key) == value) for key, value in pairs])
        weight = 1 / (_MISFIT**2 + _ROUND_NOISE**2 / max(1, len(trial.rounds)))
        precision += weight * np.outer(row, row)
        weighted += weight * gain * row
    covariance = np.linalg.inv(precision)
    return Effects(pairs, covariance @ weighted, (covariance + covariance.T) / 2)


def least_first(space: Space, trials: Sequence[Trial], point: Point) -> tuple[str, ...]:
    """Return the keys of a point ordered by the effects of their values, the smallest first."""
    effects = effects_of(space, trials)
    gains = dict(zip(effects.pairs, effects.mean, strict=True))
    return tuple(sorted(point, key=lambda key: gains.get((key, point[key]), 0.0)))
