"""Where further trials are placed, on curves whose knee is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from pgdyno.stats.curves.levels import first_levels, next_levels
from pgdyno.stats.curves.scaling import observe


def usl(contention: float, crosstalk: float) -> Callable[[int], float]:
    return lambda n: 100 * n / (1 + contention * (n - 1) + crosstalk * n * (n - 1))


@pytest.mark.parametrize(
    ("highest", "expected"),
    [(3, (0, 1, 2, 3)), (5, (0, 1, 2, 3, 4, 5)), (12, (0, 2, 4, 8, 12)), (32, (0, 2, 4, 8, 16, 32))],
)
def test_it_begins_with_the_ends_and_what_doubles(highest: int, expected: tuple[int, ...]) -> None:
    assert first_levels(range(highest + 1)) == expected


@pytest.mark.parametrize(("contention", "crosstalk"), [(0.02, 0.005), (0.2, 0.0), (0.0, 0.001)])
def test_the_knee_of_32_levels_is_found_with_fewer(contention: float, crosstalk: float) -> None:
    """Noise of 1 %, three blocks at a time: measure, look, measure what is asked for."""
    law, candidates, random = usl(contention, crosstalk), range(1, 33), np.random.default_rng(4)
    highest = max(map(law, candidates))
    expected = next(n for n in candidates if law(n) >= 0.95 * highest)
    levels, blocks = first_levels(candidates), []
    for _ in range(40):
        for _ in range(3):
            slowed = random.uniform(0.7, 1.0)
            blocks.append({n: law(n) * slowed * math.exp(random.normal(0, 0.01)) for n in levels})
        found = observe(blocks)
        levels = next_levels(candidates, found, 99)
        if not levels:
            break
    assert found.knee.low <= expected
    assert found.knee.high is None or expected <= found.knee.high
    assert (found.knee.high or 99) - found.knee.low <= 1
    assert len(found.levels) < 26
    assert sum(map(len, blocks)) < 32 * len(blocks)


def test_a_peak_between_two_coarse_levels_is_found() -> None:
    """X = N/(1 + N(N−1)/128): highest at √128 = 11.3, 95 % of that from 9 on."""
    law, candidates = usl(0.0, 1 / 128), range(1, 33)
    levels, blocks = first_levels(candidates), []
    for _ in range(20):
        if not levels:
            break
        blocks += [{n: law(n) * slowed for n in levels} for slowed in (1.0, 0.9, 1.1, 1.05, 0.95)]
        found = observe(blocks)
        levels = next_levels(candidates, found, 99)
    assert found.best == 11
    assert (found.knee.low, found.knee.high) == (9, 9)


def test_a_knee_whose_neighbour_was_not_tried_is_none_yet() -> None:
    """Measured at 1, 8 and 16; the rate stays from 8 on, so that the knee may lie anywhere after 1."""
    blocks = [{1: 10.0 * k, 8: 100.0 * k, 16: 100.1 * k} for k in (1.0, 0.9, 1.1, 1.02, 0.95)]
    found = observe(blocks)
    assert (found.knee.low, found.knee.high) == (8, 8)
    assert next_levels(range(1, 17), found, 5) == (3, 8, 16)
    assert next_levels(range(1, 17), found, 4) == ()  # no time is left for a level more


def test_nothing_more_is_asked_for_once_it_is_found() -> None:
    blocks = [{1: 10.0 * k, 2: 100.0 * k, 3: 100.1 * k} for k in (1.0, 0.9, 1.1, 1.02, 0.95)]
    assert next_levels(range(1, 4), observe(blocks), 99) == ()
