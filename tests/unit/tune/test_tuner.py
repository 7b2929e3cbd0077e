"""The note on noise that hides all that a search has tried."""

from __future__ import annotations

import math

import numpy as np
import pytest

from pgdyno.model.tuning.tuning import Point
from pgdyno.tune.search.race import LostInNoise
from pgdyno.tune.search.searching import CandidateFailedError
from pgdyno.tune.tuner import MARGIN, noise_note, remaining, shorten

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


WINNER = {f"setting{number}": "on" for number in range(8)}


class Machine:
    """Compares a point with the winner: what it lacks costs what ``worth`` says."""

    def __init__(self, worth: dict[str, float], noise: float = 0.004) -> None:
        self.worth, self.noise = worth, noise
        self.random = np.random.default_rng(5)
        self.baselines: list[Point] = []

    def __call__(self, winner: Point, rest: Point) -> list[float]:
        self.baselines.append(winner)
        lost = sum(self.worth.get(key, 0.0) for key in winner if key not in rest)
        return [float(-lost + self.random.normal(0, self.noise))]


def allowed(_: Point) -> str:
    return ""


def shortened(machine: Machine) -> Point:
    return remaining(WINNER, list(shorten(WINNER, list(WINNER), machine, machine.noise, allowed)))


def test_what_pays_is_what_remains() -> None:
    assert shortened(Machine({"setting2": 0.1, "setting7": 0.3})) == {"setting2": "on", "setting7": "on"}


def test_small_losses_do_not_add_up_to_more_than_the_margin() -> None:
    """Each of eight is worth 1 %, less than the margin of 2 %: two at most may go."""
    machine = Machine(dict.fromkeys(WINNER, 0.01), noise=0.001)
    assert len(shortened(machine)) >= 6
    assert all(one == WINNER for one in machine.baselines)


def test_noise_that_is_too_large_removes_hardly_anything() -> None:
    """Each attempt is wrong in at most one of twenty cases."""
    assert len(shortened(Machine({}, noise=0.1))) >= 7


def test_what_harms_is_left_out() -> None:
    assert "setting0" not in shortened(Machine({"setting0": -0.05, "setting1": 0.1}))


def test_a_loss_on_one_workload_is_not_made_good_by_another() -> None:
    """Without the third setting, reads lose what writes gain; without the others, nothing changes."""

    def measure(_winner: Point, rest: Point) -> list[float]:
        return [0.0, 0.0] if "setting3" in rest else [-0.05, 0.05]

    removals = list(shorten(WINNER, list(WINNER), measure, 0.004, allowed))
    assert remaining(WINNER, removals) == {"setting3": "on"}
    (told,) = (one for one in removals if one.keys == ("setting3",))
    assert told.ratio is not None
    assert told.ratio[0] == pytest.approx(0.951, abs=0.001)  # of the worse one


def test_several_workloads_need_more_rounds_than_one() -> None:
    """The noise is of their mean, and each by itself has more."""

    def rounds_on(workloads: int) -> int:
        found = shorten({"jit": "off"}, ["jit"], lambda *_: [0.0] * workloads, 0.008, allowed)
        return next(iter(found)).rounds

    assert rounds_on(1) < rounds_on(4)


def test_an_attempt_says_what_was_measured() -> None:
    first = next(iter(shorten({"jit": "off"}, ["jit"], Machine({"jit": 0.2}), 0.004, allowed)))
    assert (first.keys, first.is_kept) == (("jit",), False)
    assert first.ratio is not None
    assert first.ratio[0] == pytest.approx(math.exp(-0.2), rel=0.02)
    assert first.ratio[2] < 1 - MARGIN


def test_what_a_server_does_not_start_without_is_kept() -> None:
    def measure(_winner: Point, rest: Point) -> list[float]:
        if "setting3" not in rest:
            raise CandidateFailedError("it did not start")
        return [0.0]

    assert remaining(WINNER, list(shorten(WINNER, list(WINNER), measure, 0.004, allowed))) == {
        "setting3": "on"
    }


def test_what_would_not_be_allowed_is_not_left_out() -> None:
    def why_not(point: Point) -> str:
        return "" if "setting5" in point else "the worst case would not fit into memory"

    machine = Machine({})
    removals = list(shorten(WINNER, list(WINNER), machine, machine.noise, why_not))
    assert remaining(WINNER, removals) == {"setting5": "on"}


def test_no_further_round_begins_when_time_is_over() -> None:
    rounds: list[Point] = []

    def measure(_winner: Point, rest: Point) -> list[float]:
        rounds.append(rest)
        return [-0.02]  # neither shown to be within the margin, nor beyond it

    removals = list(shorten(WINNER, list(WINNER), measure, 0.01, allowed, is_over=lambda: len(rounds) >= 2))
    assert [(one.rounds, one.is_kept) for one in removals] == [(2, False)]
    assert not list(shorten(WINNER, list(WINNER), measure, 0.01, allowed, is_over=lambda: True))
    assert len(rounds) == 2
