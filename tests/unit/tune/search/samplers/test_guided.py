"""The guided sampler: the plan first, then the best point with at most three changes."""

from __future__ import annotations

from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.tuning import Dimension, Space, Trial, TrialRound, TrialState
from pgdyno.tune.search.samplers.guided import make

KEYS = [f"k{number}" for number in range(8)]
SPACE = Space(tuple(Dimension(key, Layer.APPLICATION, ("a", "b"), "z", planned="a") for key in KEYS))

WON, LOST = (TrialRound(0.2, 0.2, 0.0),) * 2, (TrialRound(-0.1, 0.1, 0.2),) * 2


def test_the_first_point_is_the_plan() -> None:
    assert make(SPACE, 1).ask() == SPACE.plan == dict.fromkeys(KEYS, "a")


def test_later_points_differ_from_the_best_one_in_at_most_three_values() -> None:
    sampler, plan = make(SPACE, 1), SPACE.plan
    sampler.tell(Trial(1, plan, None, WON, TrialState.WON))
    seen = [plan]
    for number in range(2, 12):
        point = sampler.ask()
        changed = {key for key in KEYS if point.get(key) != plan.get(key)}
        assert 1 <= len(changed) <= 3
        assert point not in seen
        seen.append(point)
        sampler.tell(Trial(number, point, 1, LOST, TrialState.LOST))
