"""A note on noise that hides all that a search has tried."""

from __future__ import annotations

import math

from pgdyno.base import numbers
from pgdyno.tune.search.lost_in_noise import LostInNoise
from pgdyno.tune.search.race import MOST_ROUNDS
from pgdyno.tune.tune_request import SHORTEN_SHARE

NOISE_NOTE = "the noise is larger than any effect"
"""How the note begins."""
_MOST_MINUTES = 180  # beyond, hours


def noise_note(lost: LostInNoise, trial: int, round_s: float) -> str:
    """Return the note after a trial, with the budget that shows the gain; a round takes ``round_s``."""
    minutes = math.ceil(lost.rounds * round_s / (1 - SHORTEN_SHARE) / 60)
    budget = f"{minutes}m" if minutes <= _MOST_MINUTES else f"{math.ceil(minutes / 60)}h"
    return (
        f"{NOISE_NOTE} up to trial {trial}: two rounds of one configuration differ by "
        f"{numbers.share(math.expm1(lost.noise), 1)} (standard deviation), so that {MOST_ROUNDS} rounds show "
        f"gains from {numbers.share(math.expm1(lost.least_gain), 1)} on; a proof of "
        f"{numbers.change(math.exp(lost.wanted))} takes about --budget {budget} here, a quieter machine less"
    )
