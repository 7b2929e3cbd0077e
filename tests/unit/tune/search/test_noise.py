"""The noise of a round, pooled over trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pgdyno.model.tuning.tuning import RoundRatios, Trial, TrialRound
from pgdyno.tune.search.noise import noise_of, noise_on


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
