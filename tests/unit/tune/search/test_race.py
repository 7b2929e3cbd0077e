"""How long a candidate is measured beside the incumbent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pgdyno.model.tuning.tuning import RoundRatios, Trial, TrialRound, TrialState
from pgdyno.tune.search.race import MOST_ROUNDS, OnWorkload, half_width, noise_of, noise_on, standing


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


def trials_with(noise: float, count: int, rounds: int) -> list[Trial]:
    random = np.random.default_rng(1)
    sides = noise / np.sqrt(2)

    def one_round(lead: float) -> TrialRound:
        default, incumbent, candidate = map(float, random.normal(0, sides, 3))
        return TrialRound(lead + candidate - incumbent, lead + candidate - default, incumbent - default)

    leads = [float(random.normal(0, 0.1)) for _ in range(count)]
    return [
        Trial(number, {"jit": "off"}, None, tuple(one_round(lead) for _ in range(rounds)))
        for number, lead in enumerate(leads, 1)
    ]


def test_before_anything_is_measured_it_is_a_guess_of_one_percent() -> None:
    assert noise_of([]) == pytest.approx(0.01)


@pytest.mark.parametrize("noise", [0.002, 0.03])
def test_it_comes_from_the_rounds_and_not_from_differences_between_candidates(noise: float) -> None:
    assert noise_of(trials_with(noise, 100, 3)) == pytest.approx(noise, rel=0.25)


def test_incumbents_tell_it_where_every_candidate_has_one_round() -> None:
    one_round_each = [replace(one, incumbent=1) for one in trials_with(0.03, 40, 1)]
    assert noise_of(one_round_each) == pytest.approx(0.03, rel=0.3)


def test_the_default_is_left_out_once_candidates_have_taken_several_rounds() -> None:
    """Measured: tuned servers are 1 % apart from round to round, and the default 4 % from them."""
    random = np.random.default_rng(2)

    def one_round() -> TrialRound:
        lead, default = float(random.normal(0, 0.01)), float(random.normal(0, 0.04))
        return TrialRound(lead, lead + default, default)

    trials = [Trial(n, {"jit": "off"}, 1, tuple(one_round() for _ in range(4))) for n in range(2, 20)]
    assert noise_of(trials) == pytest.approx(0.01, rel=0.25)


def test_the_noise_of_a_workload_is_that_beside_the_default() -> None:
    """A guess of 4 % at first; then what candidates and incumbents repeat."""
    random = np.random.default_rng(3)
    assert noise_on([], "read-only") == pytest.approx(0.04)

    def one_round() -> TrialRound:
        candidate, incumbent = (0.3 + float(random.normal(0, 0.02)) for _ in range(2))
        found = RoundRatios(0.0, candidate, incumbent)
        return TrialRound(0.0, candidate, incumbent, {"read-only": found})

    one_each = [Trial(n, {"jit": "off"}, 1, (one_round(),)) for n in range(2, 60)]
    several = [Trial(n, {"jit": "off"}, None, (one_round(), one_round())) for n in range(2, 60)]
    assert noise_on(one_each, "read-only") == pytest.approx(0.02, rel=0.25)
    assert noise_on(several, "read-only") == pytest.approx(0.02, rel=0.25)
    assert noise_on(several, "read-write") == pytest.approx(0.04)  # it was not measured
