"""How good samplers are, on a landscape that was fitted to a recorded search; and what they claim where there
is nothing.

    python -m bench.tune_simulated RECORDED.tuning.json [--trials 25] [--seeds 60] [--flat 200]

The landscape is additive in ln throughput, by ridge regression of the recorded gains on values of dimensions;
the noise of a round is drawn from the recorded rounds' own deviations. There are two workloads, which gain
alike, with noise of their own; "lopsided" is where nothing helps but two more settings, each of which makes
one workload 49 % faster and the other 20 % slower. "Share" is what a search has found of
the best gain that the landscape has.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter

from pgdyno.model.experiments.metric import METRICS, THROUGHPUT
from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.plans.plan import Layer, Terms
from pgdyno.model.tuning.tuning import Dimension, Point, RoundRatios, Trial, TrialRound, TrialState, Tuning
from pgdyno.stats.decision import decide
from pgdyno.tune.search.additive import least_first
from pgdyno.tune.search.race import noise_of
from pgdyno.tune.search.samplers import load
from pgdyno.tune.search.searching import search
from pgdyno.tune.tuner import remaining, shorten

_RIDGE = 1.0  # of effects in units of 3 %
_PROOF_ROUNDS = 8
_WORKLOADS = ("one", "another")
_LOPSIDED = {"lopsided_one": (0.4, -0.22), "lopsided_another": (-0.22, 0.4)}


@dataclass
class Landscape:
    """Effects of values, and deviations of rounds to draw noise from.

    ``lopsided`` are effects of settings on the first and the second workload.
    """

    effects: Mapping[tuple[str, str], float]
    deviations: np.ndarray
    random: np.random.Generator
    lopsided: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def gains(self, point: Point) -> tuple[float, float]:
        """Return ln(throughput / default) of a point on both workloads."""
        alike = sum(self.effects.get(pair, 0.0) for pair in point.items())
        more = [self.lopsided[key] for key in point if key in self.lopsided]
        return alike + sum(one for one, _ in more), alike + sum(other for _, other in more)

    def gain(self, point: Point) -> float:
        """Return the mean of both."""
        return sum(self.gains(point)) / 2

    def noise(self) -> float:
        """Return the noise of one server in a round: that of a ratio has twice the variance."""
        return float(self.random.choice(self.deviations) / math.sqrt(2))

    def trial(self, incumbent: Point, candidate: Point) -> TrialRound:
        """Return a round of a trial; the mean over both workloads has the recorded noise."""
        found = [
            self._ratios(incumbent, old, new)
            for old, new in zip(self.gains(incumbent), self.gains(candidate), strict=True)
        ]
        to_incumbent, to_default, between = np.mean(
            [(one.to_incumbent, one.to_default, one.incumbent_to_default) for one in found], axis=0
        )
        by_workload = dict(zip(_WORKLOADS, found, strict=True))
        return TrialRound(float(to_incumbent), float(to_default), float(between), by_workload)

    def _ratios(self, incumbent: Point, old: float, new: float) -> RoundRatios:
        default, beside, tried = (math.sqrt(2) * self.noise() for _ in range(3))
        new += tried - default
        old = old + beside - default if incumbent else 0.0
        return RoundRatios(new - old, new, old)

    def pair(self, winner: Point, rest: Point) -> float:
        """Return a round of a winner and what remains of it."""
        return self.gain(rest) + self.noise() - self.gain(winner) - self.noise()

    def pair_on_each(self, winner: Point, rest: Point) -> list[float]:
        """Return a round of a winner and what remains of it, by workload: each has its own noise."""
        gained = self.gain(rest) - self.gain(winner)
        return [gained + math.sqrt(2) * (self.noise() - self.noise()) for _ in _WORKLOADS]


def recorded(path: Path) -> Tuning:
    """Return a search from its file."""
    document = json.loads(path.read_bytes())
    document.pop("schema_version")
    return TypeAdapter(Tuning).validate_python(document)


def fitted(tuning: Tuning, seed: int, *, is_flat: bool = False) -> Landscape:
    """Return the landscape; a flat one has the noise alone."""
    pairs = [(one.key, value) for one in tuning.space.dimensions for value in one.values]
    measured = [one for one in tuning.trials if one.rounds]
    x = np.array([[float(one.point.get(key) == value) for key, value in pairs] for one in measured])
    y = np.array([one.gain for one in measured], dtype=float)
    solved = np.linalg.solve(x.T @ x + _RIDGE / 9 * np.eye(len(pairs)), x.T @ y)
    effects = {} if is_flat else dict(zip(pairs, map(float, solved), strict=True))
    return Landscape(effects, _deviations(tuning), np.random.default_rng(seed))


def _deviations(tuning: Tuning) -> np.ndarray:
    """Return what rounds of one trial, and of one incumbent beside the default, deviate from their mean."""
    groups: dict[object, list[float]] = defaultdict(list)
    for trial in tuning.trials:
        groups[trial.number] += [one.to_incumbent for one in trial.rounds]
        if trial.incumbent is not None:
            groups["incumbent", trial.incumbent] += [one.incumbent_to_default for one in trial.rounds]
    return np.concatenate(
        [
            (np.array(values) - np.mean(values)) * math.sqrt(len(values) / (len(values) - 1))
            for values in groups.values()
            if len(values) > 1
        ]
    )


def best_gain(tuning: Tuning, landscape: Landscape) -> float:
    """Return the highest gain of the landscape: it is additive, so that each dimension is chosen alone."""
    return sum(
        max(0.0, *(landscape.gain({one.key: value}) for value in one.values))
        for one in tuning.space.dimensions
    )


def searched(tuning: Tuning, landscape: Landscape, sampler: str, trials: int, seed: int) -> list[Trial]:
    """Return the trials of one search."""
    asked = load()[sampler].make(tuning.space, seed)
    found = search(asked, landscape.trial, lambda _: None, lambda _: "")
    return [trial for _, trial in zip(range(trials), found, strict=False)]


def winner_of(trials: list[Trial]) -> Point:
    """Return the last incumbent; the default has no changes."""
    won = [one.point for one in trials if one.state is TrialState.WON]
    return won[-1] if won else {}


def is_claimed(tuning: Tuning, landscape: Landscape, trials: list[Trial]) -> bool:
    """Whether a search ends in a proven gain: its answer made short, and measured again."""
    winner = winner_of(trials)
    if not winner:
        return False
    order = least_first(tuning.space, trials, winner)
    removals = list(shorten(winner, order, landscape.pair_on_each, noise_of(trials), lambda _: ""))
    answer = remaining(winner, removals)
    if not answer:
        return False
    ratios = [[landscape.pair({}, answer)] for _ in range(_PROOF_ROUNDS)]
    verdict = decide(
        ratios,
        workload="simulated",
        metric=METRICS[THROUGHPUT],
        variant="tuned",
        baseline="default",
        level=0.95,
        equivalence_margin=0.02,
        power=0.8,
    )
    return verdict.decision is Decision.BETTER


def shares(tuning: Tuning, sampler: str, trials: int, seeds: int) -> list[float]:
    """Return what searches with different seeds found, as shares of the best gain."""
    found = []
    for seed in range(seeds):
        landscape = fitted(tuning, seed)
        point = winner_of(searched(tuning, landscape, sampler, trials, seed))
        best = best_gain(tuning, landscape)
        found.append(math.expm1(landscape.gain(point)) / math.expm1(best))
    return found


def slower_answers(tuning: Tuning, trials: int, seeds: int) -> int:
    """Return how many searches of a lopsided landscape end with a point that is too slow on a workload."""
    more = tuple(Dimension(key, Layer.APPLICATION, ("on",), "off") for key in _LOPSIDED)
    wider = replace(tuning, space=replace(tuning.space, dimensions=(*tuning.space.dimensions, *more)))
    count = 0
    for seed in range(seeds):
        landscape = replace(fitted(tuning, seed, is_flat=True), lopsided=_LOPSIDED)
        winner = winner_of(searched(wider, landscape, "guided", trials, seed))
        count += min(landscape.gains(winner)) < math.log(1 - Terms().max_loss)
    return count


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recorded", type=Path)
    parser.add_argument("--trials", type=int, default=25)
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--flat", type=int, default=200)
    asked = parser.parse_args()
    tuning = recorded(asked.recorded)
    landscape = fitted(tuning, 0)
    best, plan = math.expm1(best_gain(tuning, landscape)), math.expm1(landscape.gain(tuning.space.plan))
    print(f"best gain {best:+.1%}, of which the plan has {plan / best:.2f}")
    print(f"noise of a round {landscape.deviations.std():.2%}")
    for sampler in ("guided", "random"):
        found = shares(tuning, sampler, asked.trials, asked.seeds)
        low, middle, high = np.quantile(found, (0.25, 0.5, 0.75))
        print(f"{sampler}: share {middle:.3f} (quartiles {low:.3f} … {high:.3f}), {asked.seeds} runs")
    slower = slower_answers(tuning, asked.trials, asked.flat)
    print(f"lopsided: slower on a workload by more than the limit in {slower} of {asked.flat} runs")
    flat = [fitted(tuning, seed, is_flat=True) for seed in range(asked.flat)]
    claimed = [
        is_claimed(tuning, one, searched(tuning, one, "guided", asked.trials, seed))
        for seed, one in enumerate(flat)
    ]
    print(f"flat: pgdyno claims a gain in {sum(claimed)} of {asked.flat} runs")


if __name__ == "__main__":
    main()
