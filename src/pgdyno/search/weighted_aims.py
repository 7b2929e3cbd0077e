"""Choose points for several aims: one weighting of them at random for each point, then as for one aim. Pure.

    symbol  meaning                                                              shape       unit
    λ       weights of the aims, uniform on the simplex: they add up to 1        (aims,)     1
    ℓ       what a trial lacks of the best gain, as a share of the aim's range   (aims,)     1
    f       max over aims of λ ℓ, plus ρ times the sum of λ ℓ; ρ = 0.05          ()          1

The sampler of one aim is told every trial so far with f(default) - f(trial) as its gain, and asked for one
point. The maximum reaches every point of a front, bent as it may be, where a weighted sum alone would not;
the sum keeps points off the front from being as good as those on it.

Source: Knowles (2006), ParEGO, IEEE Transactions on Evolutionary Computation 10, 50-66, §III; there weights
are drawn from a lattice and the model is a Gaussian process.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator as Random

from pgdyno.model.tuning.aims import Aim
from pgdyno.model.tuning.space import Point
from pgdyno.model.tuning.tuning import Trial, TrialRound, TrialState
from pgdyno.search.samplers._contract import Sampler
from pgdyno.stats.sample import FloatArray

_RHO = 0.05  # Knowles's
_UNIT = 0.1  # arbitrary: an aim's whole range counts as 10 % of throughput does to a sampler of one aim
_MOST_REPEATED = 20  # points in a row that were tried before; then one of them is returned


@dataclass
class WeightedAims:
    """A sampler for several aims. ``make`` makes one of a single aim, by its seed."""

    make: Callable[[int], Sampler]
    aims: tuple[Aim, ...]
    random: Random
    told: list[Trial] = field(default_factory=list)

    def ask(self) -> Point:
        """Return the next point: the first of a new sampler is the plan."""
        sampler = self.make(int(self.random.integers(2**31)))
        weights = self.random.dirichlet(np.ones(len(self.aims)))
        weighed = {_key(one.point): one for one in scalarised(self.told, self.aims, weights)}
        for trial in weighed.values():
            sampler.tell(trial)
        for _ in range(_MOST_REPEATED):
            point = sampler.ask()
            if _key(point) not in weighed:
                break
            sampler.tell(weighed[_key(point)])
        return point

    def tell(self, trial: Trial) -> None:
        """Keep an ended trial, once; the default is known."""
        if trial.point and trial not in self.told:
            self.told.append(trial)


def scalarised(trials: Sequence[Trial], aims: Sequence[Aim], weights: FloatArray) -> tuple[Trial, ...]:
    """Return the trials as if they had one aim: the best one, if it is better than the default, has won.

    Shapes: weights (aims,), adding up to 1. Failed trials stay as they are.
    """
    measured = [one for one in trials if one.by_aim]
    rows = [[0.0] * len(aims), *([aim.gain(one.by_aim[aim]) for aim in aims] for one in measured)]
    gains = np.array(rows)
    best = gains.max(axis=0)
    span = best - gains.min(axis=0)
    lacking = weights * (best - gains) / np.where(span > 0, span, 1.0)
    losses = lacking.max(axis=1) + _RHO * lacking.sum(axis=1)
    scores = _UNIT * (losses[0] - losses[1:])
    top = int(scores.argmax()) if measured and scores.max() > 0 else None
    by_number = {
        one.number: _as_one(one, float(score), is_best=place == top)
        for place, (one, score) in enumerate(zip(measured, scores, strict=True))
    }
    return tuple(by_number.get(one.number, one) for one in trials)


def _as_one(trial: Trial, score: float, *, is_best: bool) -> Trial:
    rounds = (TrialRound(0.0, score, 0.0),) * len(trial.rounds)
    return replace(trial, rounds=rounds, state=TrialState.WON if is_best else TrialState.LOST, reason="")


def _key(point: Point) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(point.items()))
