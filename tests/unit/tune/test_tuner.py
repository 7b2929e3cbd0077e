"""The note on noise that hides all that a search has tried."""

from __future__ import annotations

import math

import pytest

from pgdyno.tune.search.noise import LostInNoise
from pgdyno.tune.tuner import noise_note

NBSP = "\N{NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("rounds", "budget"),
    [
        (5, "8m"),  # 5 rounds of 24 s, for which a quarter of the budget is kept
        (200, "6h"),  # 80 minutes in a quarter of it
    ],
)
def test_it_says_what_shows_and_the_budget_for_what_does_not(rounds: int, budget: str) -> None:
    lost = LostInNoise(math.log(1.12), math.log(1.18), math.log(1.03), rounds)
    assert noise_note(lost, 1, 24.0).replace(NBSP, " ") == (
        "the noise is larger than any effect up to trial 1: two rounds of one configuration differ by 12.0 % "
        "(standard deviation), so 5 rounds show only gains above 18.0 %; to prove +3.0 % takes about "
        f"--budget {budget}, less on a quieter machine"
    )
