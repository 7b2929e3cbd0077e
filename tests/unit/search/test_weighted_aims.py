"""Points for several aims: the weighting by hand, and what a sampler of one aim is told."""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.aims import Aim
from pgdyno.model.tuning.space import Dimension, Point, Space
from pgdyno.model.tuning.tuning import Trial, TrialRound, TrialState
from pgdyno.search.samplers import load
from pgdyno.search.weighted_aims import WeightedAims, scalarised

AIMS = (Aim.THROUGHPUT, Aim.WAL)
SPACE = Space(
    (
        Dimension("jit", Layer.APPLICATION, ("off",), "on", planned="off"),
        Dimension("work_mem", Layer.APPLICATION, ("1MB", "16MB", "64MB"), "4MB"),
    )
)


def trial(number: int, throughput: float, wal: float, point: Point | None = None) -> Trial:
    one = TrialRound(0.0, throughput, 0.0, by_aim={Aim.THROUGHPUT: throughput, Aim.WAL: wal})
    return Trial(number, point or {"jit": str(number)}, None, (one,), TrialState.WON)


def scores(weights: tuple[float, float]) -> list[float]:
    """Return the scores of a fast trial, and of one that writes little."""
    found = scalarised([trial(1, 0.4, 0.0), trial(2, 0.1, -0.2)], AIMS, np.array(weights))
    return [one.score or 0.0 for one in found]


def test_scores_are_as_reckoned_by_hand() -> None:
    # Ranges: 0 … 0.4 of throughput, 0 … 0.2 of WAL. With equal weights the default lacks (0.5, 0.5),
    # f = 0.5 + 0.05 * 1 = 0.55; trial 1 lacks (0, 0.5): 0.5 + 0.05 * 0.5 = 0.525; trial 2 lacks
    # 0.5 * 0.75 = 0.375 of throughput alone: 0.375 * 1.05 = 0.39375. Scores are a tenth of the difference.
    assert scores((0.5, 0.5)) == pytest.approx([0.0025, 0.015625])


def test_weights_decide_who_is_the_best() -> None:
    fast, small = scores((0.9, 0.1))
    assert fast > small
    fast, small = scores((0.1, 0.9))
    assert small > fast


def test_only_the_best_has_won_and_only_if_it_is_better_than_the_default() -> None:
    states = [
        one.state for one in scalarised([trial(1, 0.4, 0.0), trial(2, 0.1, -0.2)], AIMS, np.array([0.5, 0.5]))
    ]
    assert states == [TrialState.LOST, TrialState.WON]
    (worse,) = scalarised([trial(1, -0.1, 0.1)], AIMS, np.array([0.5, 0.5]))
    assert worse.state is TrialState.LOST


def test_failed_trials_stay_as_they_are() -> None:
    failed = Trial(1, {"jit": "off"}, None, state=TrialState.FAILED, reason="out of memory")
    assert scalarised([failed], AIMS, np.array([0.5, 0.5])) == (failed,)


def sampler(name: str) -> WeightedAims:
    return WeightedAims(lambda seed: load()[name].make(SPACE, seed), AIMS, np.random.default_rng(4))


def asked(name: str) -> list[Point]:
    one, points = sampler(name), []
    for number in range(1, 6):
        points.append(one.ask())
        one.tell(trial(number, 0.01 * number, -0.01, points[-1]))
    return points


@pytest.mark.parametrize("name", ["guided", "random"])
def test_equal_seeds_and_answers_give_equal_points(name: str) -> None:
    assert asked(name) == asked(name)


def test_the_guided_one_begins_with_the_plan_and_repeats_nothing() -> None:
    points = asked("guided")
    assert points[0] == {"jit": "off"}
    assert all(points.count(one) == 1 for one in points)


def test_tpe_goes_on_after_the_plan() -> None:
    pytest.importorskip("optuna", reason="optuna is not installed")
    one = sampler("tpe")
    first = one.ask()
    assert first == {"jit": "off"}
    one.tell(trial(1, 0.1, 0.0, first))
    assert one.ask() != first
