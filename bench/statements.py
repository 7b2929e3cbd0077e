"""How often verdicts on statements are wrong, and how often a slower statement is found: simulations.

    python -m bench.statements [EXPERIMENTS]     (default 2000 per row; some minutes)

Rounds of equal servers, and of a server on which one statement of ten is 10 % slower. The noise of a
statement's round is normal, with a standard deviation around 3 % that differs between statements (log-normal,
0.5). A part r of its variance is of the round, and all statements share it. The whole experiment has a bias
like that of equal servers in duets (decision 68).

Prints for each row the share of experiments in which Benjamini-Hochberg and Benjamini-Yekutieli find any
difference, and the shares with a verdict "slower" of pgdyno's, which is Benjamini-Yekutieli's with a lower
bound beyond 3 %.
"""

from __future__ import annotations

import sys

import numpy as np

from pgdyno.measure.verdicts.statements import LEAST_SLOWER
from pgdyno.model.experiments.experiment import DUET_BIAS
from pgdyno.stats.many_ratios import adjusted, levels_after_selection, many_means
from pgdyno.stats.sample import BoolArray, FloatArray

_LEVEL = 0.95
_NOISE, _SPREAD = 0.03, 0.5
_SLOWED = 0.10


def main(experiments: int) -> None:
    """Print a table."""
    print("| rounds | statements | r | any, BH | any, BY | any slower | the slowed one |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for rounds in (5, 10):
        for count in (5, 10, 50, 500):
            for shared in (0.0, 0.3, 0.8):
                print(_row(rounds, count, shared, experiments // (5 if count > 100 else 1)))


def _row(rounds: int, count: int, shared: float, experiments: int) -> str:
    random = np.random.default_rng((rounds, count, int(10 * shared)))
    hochberg = yekutieli = slower = found = 0
    for _ in range(experiments):
        ratios = _equal(random, rounds, count, shared)
        means = many_means(ratios, DUET_BIAS)
        hochberg += bool(np.any(_hochberg(means.p_value)))
        is_found = adjusted(means.p_value) <= 1 - _LEVEL
        yekutieli += bool(np.any(is_found))
        slower += bool(np.any(_slower(ratios)))
        ratios[0] += np.log1p(_SLOWED)
        found += bool(_slower(ratios)[0])
    shares = " | ".join(f"{one / experiments:.1%}" for one in (hochberg, yekutieli, slower, found))
    return f"| {rounds} | {count} | {shared} | {shares} |"


def _equal(random: np.random.Generator, rounds: int, count: int, shared: float) -> FloatArray:
    noise = _NOISE * np.exp(_SPREAD * random.standard_normal((count, 1)))
    of_rounds = np.sqrt(shared) * random.standard_normal(rounds)
    own = np.sqrt(1 - shared) * random.standard_normal((count, rounds))
    return np.asarray(noise * (of_rounds + own) + DUET_BIAS * random.standard_normal())


def _slower(ratios: FloatArray) -> BoolArray:
    means = many_means(ratios, DUET_BIAS)
    is_found = adjusted(means.p_value) <= 1 - _LEVEL
    lows, _ = means.bounds(levels_after_selection(is_found, _LEVEL))
    return np.asarray(is_found & (lows > np.log1p(LEAST_SLOWER)))


def _hochberg(p_values: FloatArray) -> BoolArray:
    ranks = np.argsort(np.argsort(p_values)) + 1
    below = p_values <= (1 - _LEVEL) * ranks / len(p_values)
    return np.asarray(p_values <= p_values[below].max(initial=-1.0))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
