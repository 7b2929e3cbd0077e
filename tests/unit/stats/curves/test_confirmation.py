"""A level recommended by some rounds, and what fresh ones say of it; the truth is known by simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from pgdyno.stats.curves.confirmation import confirm


def rounds(rates: Mapping[int, float], factors: Sequence[float]) -> list[Mapping[int, float]]:
    """Return rounds whose levels are all slowed alike: pairs have no noise."""
    return [{level: rate * factor for level, rate in rates.items()} for factor in factors]


def test_the_smallest_level_that_is_enough_is_recommended_and_confirmed() -> None:
    confirmation = confirm(rounds({0: 50.0, 1: 96.0, 2: 100.0, 4: 90.0}, (1.0, 0.8, 1.1, 0.9, 1.0, 0.7)))
    assert confirmation is not None
    assert (confirmation.level, confirmation.against, confirmation.rounds) == (1, 2, 3)
    assert confirmation.ratio.point == pytest.approx(0.96)
    assert confirmation.is_confirmed


def test_luck_of_the_first_rounds_is_found_out() -> None:
    lucky = rounds({0: 99.0, 1: 100.0}, (1.0, 1.0, 1.0))
    fresh = [{0: 80.0, 1: 100.0}, {0: 81.0, 1: 100.0}, {0: 79.0, 1: 100.0}]
    confirmation = confirm([*lucky, *fresh])
    assert confirmation is not None
    assert (confirmation.level, confirmation.is_confirmed) == (0, False)
    assert confirmation.ratio.high < 0.95


def test_too_few_rounds_recommend_nothing() -> None:
    assert confirm(rounds({0: 1.0, 1: 2.0}, (1.0, 1.0, 1.0, 1.0, 1.0))) is None


def test_a_level_without_enough_fresh_rounds_is_not_recommended() -> None:
    measured = rounds({0: 1.0, 1: 2.0}, (1.0,) * 6)
    measured[3:] = [{0: one[0], 2: 1.5} for one in measured[3:]]
    assert confirm(measured) is None


def test_levels_that_were_ruled_out_may_be_missing_in_fresh_rounds_but_not_the_best() -> None:
    measured = rounds({0: 1.0, 1: 1.96, 2: 2.0}, (1.0,) * 6)
    measured[3:] = [{1: one[1], 2: one[2]} for one in measured[3:]]
    confirmation = confirm(measured)
    assert confirmation is not None
    assert (confirmation.level, confirmation.against, confirmation.is_confirmed) == (1, 2, True)
    measured[3:] = [{0: 1.0, 1: 1.96}] * 3
    assert confirm(measured) is None


def test_a_level_of_one_lucky_round_is_not_recommended() -> None:
    measured = rounds({0: 50.0, 1: 96.0, 2: 100.0}, (1.0,) * 6)
    measured[2] = {**measured[2], 4: 200.0}
    confirmation = confirm(measured)
    assert confirmation is not None
    assert (confirmation.level, confirmation.is_confirmed) == (1, True)


def test_a_level_that_is_not_enough_is_confirmed_in_one_of_twenty_at_most() -> None:
    """The true ratio is 0.95, the limit itself: of many experiments 5 % may confirm it."""
    random, confirmed, recommended = np.random.default_rng(1), 0, 0
    for _ in range(2000):
        measured = [
            {1: 0.95 * np.exp(random.normal(0, 0.05)), 2: np.exp(random.normal(0, 0.05))} for _ in range(10)
        ]
        found = confirm(measured)
        assert found is not None
        if found.level == 1:
            recommended += 1
            confirmed += found.is_confirmed
    assert recommended > 500
    # Three standard errors of the share above 5 %.
    assert confirmed / recommended < 0.05 + 3 * (0.05 * 0.95 / recommended) ** 0.5
    assert confirmed > 0
