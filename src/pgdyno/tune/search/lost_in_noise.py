"""Noise that hides whatever a search has tried, and the rounds that would show it. Pure.

    symbol  meaning                                                              unit
    σ       noise of one round, of ln(candidate / default)                       1
    e       gain to be shown: the largest mean so far, 2 % at least              1
    n       rounds of a proof whose 95 % interval excludes 0 in four of five     rounds

A mean of n rounds has the standard error σ/√n. Its interval reaches 1.96 of these to each side, and four of
five means lie no more than 0.84 of them below the truth: n = ((1.96 + 0.84) σ / e)².
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.model.tuning.tuning import Trial
from pgdyno.tune.search.noise import noise_to_default
from pgdyno.tune.search.race import MOST_ROUNDS, WRONGLY_WON, half_width

_LEAST_WANTED = math.log(1.02)  # what is worth a restart of a server
_STANDARD_ERRORS = 1.96 + 0.84
_FEWEST_ROUNDS = 5  # of a proof


@dataclass(frozen=True)
class LostInNoise:
    """Noise that hides all effects so far. All but ``rounds`` are logarithms of ratios of throughput.

    A configuration's rounds show gains from ``least_gain`` on; a proof of ``wanted`` takes ``rounds``.
    """

    noise: float
    least_gain: float
    wanted: float
    rounds: int


def lost_in_noise(trials: Sequence[Trial]) -> LostInNoise | None:
    """Return the noise if no trial is told from the default; None if one is, or none has a figure."""
    means = {one.number: one.gain for one in trials if one.rounds and one.gain is not None}
    if not means:
        return None
    noise, rounds = noise_to_default(trials), {one.number: len(one.rounds) for one in trials}
    if any(abs(mean) > half_width(rounds[number], noise, WRONGLY_WON) for number, mean in means.items()):
        return None
    wanted = max(_LEAST_WANTED, *means.values())
    needed = math.ceil((_STANDARD_ERRORS * noise / wanted) ** 2)
    return LostInNoise(
        noise, half_width(MOST_ROUNDS, noise, WRONGLY_WON), wanted, max(_FEWEST_ROUNDS, needed)
    )
