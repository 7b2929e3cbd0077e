"""How long a candidate is measured beside the incumbent."""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.model.tuning.tuning import TrialState
from pgdyno.tune.search.race import MOST_ROUNDS, OnWorkload, half_width, standing


def raced(true_lead: float, noise: float, random: np.random.Generator) -> tuple[TrialState, int]:
    leads: list[float] = []
    while (state := standing(leads, noise)) is TrialState.RUNNING:
        leads.append(float(random.normal(true_lead, noise)))
    return state, len(leads)


def test_what_is_clearly_slower_takes_one_round() -> None:
    assert standing([-0.05], 0.01) is TrialState.LOST


def test_what_is_clearly_faster_wins_after_one_round() -> None:
    assert standing([0.05], 0.01) is TrialState.WON


def test_what_could_be_either_takes_more_rounds_but_not_for_ever() -> None:
    assert standing([0.01], 0.01) is TrialState.RUNNING
    assert standing([0.001] * MOST_ROUNDS, 0.01) is TrialState.CLOSE


def test_an_equal_candidate_takes_the_place_in_at_most_one_of_twenty_races() -> None:
    random = np.random.default_rng(3)
    won = sum(raced(0.0, 0.01, random)[0] is TrialState.WON for _ in range(4000))
    assert won / 4000 < 0.05


def test_a_candidate_that_is_two_noises_faster_mostly_wins() -> None:
    random = np.random.default_rng(4)
    won = sum(raced(0.02, 0.01, random)[0] is TrialState.WON for _ in range(1000))
    assert won > 850


@pytest.mark.parametrize(
    ("gains", "noise", "found"),
    [
        ([-0.03], 0.001, ()),  # within the limit of 5 %
        ([-0.06], 0.02, ("seems",)),  # the truth may be above it
        ([-0.06], 0.001, ("seems", "is")),
        ([-0.10, -0.12, -0.11], 0.01, ("seems", "is")),
        ([0.4], 0.01, ()),
    ],
)
def test_a_loss_on_a_workload_has_to_be_shown(
    gains: list[float], noise: float, found: tuple[str, ...]
) -> None:
    one = OnWorkload(gains, noise)
    assert one.seems_slower == ("seems" in found)
    assert one.is_slower == ("is" in found)


def test_a_loss_within_the_limit_is_shown_in_at_most_one_of_twenty_races() -> None:
    random = np.random.default_rng(5)
    limit, shown = np.log(0.95), 0
    for _ in range(4000):
        gains = list(map(float, random.normal(limit, 0.03, MOST_ROUNDS)))
        shown += any(OnWorkload(gains[:count], 0.03).is_slower for count in range(1, MOST_ROUNDS + 1))
    assert shown / 4000 < 0.05


@pytest.mark.parametrize(("rounds", "expected"), [(1, 3.656), (4, 1.541)])
def test_the_bound_is_robbins_mixture(rounds: int, expected: float) -> None:
    """By hand: sqrt((n + 1) / n² · (2 ln 20 + ln(n + 1)))."""
    assert half_width(rounds, 1.0, 0.05) == pytest.approx(expected, abs=0.001)
