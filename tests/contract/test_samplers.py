"""What every sampler does."""

from __future__ import annotations

import pytest

from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.tuning import Dimension, Point, Space, Trial, TrialRound, TrialState
from pgdyno.tune.search.samplers import USUAL, load

SPACE = Space(
    (
        Dimension("jit", Layer.APPLICATION, ("off",), "on", planned="off"),
        Dimension("work_mem", Layer.APPLICATION, ("1MB", "16MB", "64MB"), "4MB"),
        Dimension("build", Layer.COMPILER, ("built-1",), "the wheel's"),
    )
)
NAMES = sorted(load())


def told(number: int, point: Point, gain: float) -> Trial:
    state = TrialState.WON if gain > 0 else TrialState.LOST
    return Trial(number, point, None, (TrialRound(gain, gain, 0.0),), state)


def test_the_usual_one_is_in_the_catalogue() -> None:
    assert USUAL in NAMES


@pytest.mark.parametrize("name", NAMES)
class TestSampler:
    def test_it_says_how_it_chooses(self, name: str) -> None:
        assert (load()[name].__doc__ or "").strip()

    def test_its_points_are_of_the_space(self, name: str) -> None:
        sampler = load()[name].make(SPACE, 1)
        values = {one.key: one.values for one in SPACE.dimensions}
        for number in range(1, 21):
            point = sampler.ask()
            assert all(value in values[key] for key, value in point.items())
            sampler.tell(told(number, point, 0.01 * len(point)))

    def test_equal_seeds_and_answers_give_equal_points(self, name: str) -> None:
        runs = []
        for _ in range(2):
            sampler, points = load()[name].make(SPACE, 5), []
            for number in range(1, 9):
                points.append(sampler.ask())
                sampler.tell(told(number, points[-1], 0.02 if "jit" in points[-1] else -0.02))
            runs.append(points)
        assert runs[0] == runs[1]

    def test_failures_and_trials_of_an_earlier_run_can_be_told(self, name: str) -> None:
        sampler = load()[name].make(SPACE, 1)
        sampler.tell(Trial(1, {"jit": "off"}, None, state=TrialState.FAILED, reason="out of memory"))
        sampler.tell(told(2, {"work_mem": "16MB"}, 0.1))
        assert isinstance(dict(sampler.ask()), dict)
