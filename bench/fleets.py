"""Simulated fleets with a known truth: how often intervals across machines hold what they are about.

    python -m bench.fleets [FLEETS]      10 000 per figure by default, two minutes

Machines are measured in six rounds each, and analysed by the functions behind ``pgdyno fleet report``; beside
them the textbook's: Paule and Mandel's estimate of τ², intervals of the mean by Hartung, Knapp, Sidik and
Jonkman, Higgins' prediction interval, the Q-profile interval of τ². Prints a Markdown table
(docs/results/simulation.md has it) and exits with 1 if one of pgdyno's intervals holds less than it promises.

Sources: Paule, Mandel (1982), J. of Research of the National Bureau of Standards 87, 377-385; IntHout,
Ioannidis, Borm (2014), BMC Medical Research Methodology 14:25; Higgins, Thompson, Spiegelhalter (2009), J. of
the Royal Statistical Society A 172, 137-159; Viechtbauer (2007), Statistics in Medicine 26, 37-52.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import special

from pgdyno.stats import nested
from pgdyno.stats.fleet import EffectsApart, across, between_interval, predicted_reach, repeated
from pgdyno.stats.sample import BoolArray, FloatArray, Sample

SEED = 20_261_126
LEVEL, PROMISED = 0.95, 0.94
PROMISED_OF_OCCASIONS = 0.88  # of two experiments: by chance such as differ lie close together
OCCASIONS = (2, 3, 5)
ROUNDS = 6
MACHINES = (2, 3, 5, 10, 40)
BETWEEN = (0.0, 0.3, 1.0, 4.0)  # τ, in standard errors of a machine
_HALVINGS = 60
_FARTHEST = 1e4  # times S²: an upper end of τ² that no quantile here needs


@dataclass(frozen=True)
class Kind:
    """A kind of fleet: k, τ in standard errors, and by how much standard errors differ (ln, to each side)."""

    machines: int
    between: float
    unequal: float


@dataclass(frozen=True)
class Held:
    """Shares of fleets whose interval held the mean, the next machine (measured, true), and τ."""

    mean: float
    measured: float
    true: float
    between: float


def simulated(kind: Kind, fleets: int) -> tuple[EffectsApart, FloatArray, FloatArray]:
    """Return fleets whose mean is 0, and of each another machine: its true effect, its measured one."""
    random = np.random.default_rng([SEED, kind.machines, round(10 * kind.between), round(10 * kind.unequal)])
    shape = (fleets, kind.machines + 1)
    noise = np.exp(kind.unequal * random.uniform(-1, 1, shape))
    effects = kind.between * random.standard_normal(shape)
    rounds = noise[..., None] * math.sqrt(ROUNDS) * random.standard_normal((*shape, ROUNDS))
    estimated = nested.estimate(Sample(effects[..., None] + rounds, np.ones(ROUNDS, dtype=np.int64)))
    known = [part[:, :-1] for part in (estimated.mean, estimated.standard_error**2, estimated.df)]
    return EffectsApart(*known), effects[:, -1], estimated.mean[:, -1]


def held(kind: Kind, fleets: int) -> Held:
    """Return how often pgdyno's intervals hold."""
    effects, true, measured = simulated(kind, fleets)
    mean = across(effects)
    reach, low, high = predicted_reach(effects, LEVEL), *between_interval(effects, LEVEL)
    variance = kind.between**2
    return Held(
        mean=_share(np.abs(mean.mean) <= nested.critical_t(mean, LEVEL) * mean.standard_error),
        measured=_share(np.abs(measured - mean.mean) <= reach),
        true=_share(np.abs(true - mean.mean) <= reach),
        between=_share((low <= variance) & (variance <= high)),
    )


def held_of_occasions(kind: Kind, fleets: int) -> float:
    """Return how often the interval holds the mean of one machine, with experiments in place of machines."""
    mean = repeated(simulated(kind, fleets)[0])
    return _share(np.abs(mean.mean) <= nested.critical_t(mean, LEVEL) * mean.standard_error)


def held_by_textbook(kind: Kind, fleets: int) -> Held:
    """Return how often the textbook's intervals hold."""
    effects, true, measured = simulated(kind, fleets)
    between = paule_mandel(effects)
    mean, error = hartung_knapp(effects, between)
    critical = special.stdtrit(effects.count - 1, (1 + LEVEL) / 2)
    reach = special.stdtrit(max(1, effects.count - 2), (1 + LEVEL) / 2) * np.sqrt(between + error**2)
    low, high = q_profile(effects, LEVEL)
    variance = kind.between**2
    return Held(
        mean=_share(np.abs(mean) <= critical * error),
        measured=_share(np.abs(measured - mean) <= reach),
        true=_share(np.abs(true - mean) <= reach),
        between=_share((low <= variance) & (variance <= high)),
    )


def paule_mandel(effects: EffectsApart) -> FloatArray:
    """Return τ² at which the weighted sum of squares is what it is on average, or 0."""
    return _at(effects, effects.count - 1.0)


def q_profile(effects: EffectsApart, level: float) -> tuple[FloatArray, FloatArray]:
    """Return both ends of the interval of τ² by the χ² distribution of the weighted sum of squares."""
    quantiles = special.chdtri(effects.count - 1, np.array([(1 - level) / 2, (1 + level) / 2]))
    return _at(effects, float(quantiles[0])), _at(effects, float(quantiles[1]))


def hartung_knapp(effects: EffectsApart, between: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the weighted mean and its standard error by Hartung, Knapp, Sidik and Jonkman."""
    weights, mean, squares = _weighted(effects, between)
    return mean, np.sqrt(squares / (effects.count - 1) / weights.sum(axis=-1))


def _weighted(effects: EffectsApart, between: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weights, weighted mean, and weighted sum of squares."""
    weights = 1 / (effects.variances + between[..., None])
    mean = (weights * effects.means).sum(axis=-1) / weights.sum(axis=-1)
    return weights, mean, (weights * (effects.means - mean[..., None]) ** 2).sum(axis=-1)


def _at(effects: EffectsApart, wanted: float) -> FloatArray:
    """Return τ² at which the weighted sum of squares falls to ``wanted``, or 0."""
    low, high = np.zeros_like(effects.spread), effects.spread * _FARTHEST
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_above = _weighted(effects, middle)[2] > wanted
        low, high = np.where(is_above, middle, low), np.where(is_above, high, middle)
    return np.where(_weighted(effects, np.zeros_like(low))[2] > wanted, low, 0.0)


def _share(holds: BoolArray) -> float:
    return float(np.mean(holds))


def _rows(fleets: int) -> Iterator[tuple[Kind, Held, Held]]:
    for unequal in (0.0, 1.0):
        for machines in MACHINES:
            for between in BETWEEN:
                kind = Kind(machines, between, unequal)
                yield kind, held(kind, fleets), held_by_textbook(kind, fleets)


def main() -> None:
    """Print the table."""
    fleets = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    columns = ("machines", "τ", "standard errors", "mean", "next, measured", "next, true", "τ")
    print("| " + " | ".join((*columns, "textbook: mean", "next, true", "τ")) + " |\n" + "|---" * 10 + "|")
    least = 1.0
    for kind, ours, theirs in _rows(fleets):
        least = min(least, ours.mean, ours.measured, ours.true, ours.between)
        figures = (
            ours.mean,
            ours.measured,
            ours.true,
            ours.between,
            theirs.mean,
            theirs.true,
            theirs.between,
        )
        shown = " | ".join(f"{one:.1%}" for one in figures)
        print(f"| {kind.machines} | {kind.between:g} | {_errors(kind.unequal)} | {shown} |")
    print(f"\nThe least of pgdyno's: {least:.1%}.\n")
    least_of_occasions = _print_occasions(fleets)
    print(f"\nThe least of one machine's: {least_of_occasions:.1%}.")
    sys.exit(0 if least >= PROMISED and least_of_occasions >= PROMISED_OF_OCCASIONS else 1)


def _print_occasions(fleets: int) -> float:
    """Print how often the mean of one machine's experiments is held; return the least share."""
    apart = (*BETWEEN, 20.0)
    print("| experiments | standard errors | " + " | ".join(f"τ {one:g}" for one in apart) + " |")
    print("|---:|---|" + "---:|" * len(apart))
    least = 1.0
    for unequal in (0.0, 1.0):
        for count in OCCASIONS:
            shares = [held_of_occasions(Kind(count, one, unequal), fleets) for one in apart]
            least = min(least, *shares)
            errors = _errors(unequal)
            print(f"| {count} | {errors} | " + " | ".join(f"{share:.1%}" for share in shares) + " |")
    return least


def _errors(unequal: float) -> str:
    return f"differ up to {math.exp(2 * unequal):.1f}×" if unequal else "alike"


if __name__ == "__main__":
    main()
