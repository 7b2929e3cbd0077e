"""The race for the front: when a candidate has its place, and which trials are members."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pytest

from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.aims import Aim
from pgdyno.model.tuning.space import Dimension, Point, Space
from pgdyno.model.tuning.tuning import Trial, TrialRound, TrialState
from pgdyno.search.front_race import ForTheFront, front_of
from pgdyno.search.samplers import load
from pgdyno.search.searching import search
from pgdyno.search.weighted_aims import WeightedAims

AIMS = (Aim.THROUGHPUT, Aim.WAL)
ROUND = 0.01  # the rounds of these trials differ by as much


def rounds(throughput: float, wal: float, count: int) -> tuple[TrialRound, ...]:
    """Return rounds whose means are these logarithms."""
    return tuple(
        TrialRound(0.0, throughput, 0.0, by_aim={Aim.THROUGHPUT: throughput + off, Aim.WAL: wal + off})
        for off in [ROUND * (place - (count - 1) / 2) for place in range(count)]
    )


def trial(
    number: int, throughput: float, wal: float, *, count: int = 3, changes: int = 1, state: str = "won"
) -> Trial:
    point = {f"setting{n}": str(number) for n in range(changes)}
    return Trial(number, point, None, rounds(throughput, wal, count), TrialState(state))


FAST = trial(1, 0.40, 0.0)
SMALL = trial(2, 0.0, -0.50)


def judged(throughput: float, wal: float, count: int) -> Trial:
    return ForTheFront(AIMS).judged(trial(3, throughput, wal, count=count, state="running"), [FAST, SMALL])


def test_less_wal_is_better() -> None:
    assert judged(0.30, -0.60, 1).state is TrialState.WON
    lost = judged(-0.1, 0.5, 1)
    assert (lost.state, lost.reason) == (TrialState.LOST, "the default is better")


def test_it_is_given_up_once_a_trial_on_the_front_dominates_it() -> None:
    lost = judged(0.10, 0.0, 1)
    assert (lost.state, lost.reason) == (TrialState.LOST, "trial 1 is better")


def test_what_is_like_another_takes_all_its_rounds() -> None:
    assert judged(0.40, 0.0, 1).state is TrialState.RUNNING
    assert judged(0.40, 0.0, 2).state is TrialState.RUNNING
    assert judged(0.40, 0.0, 3).state is TrialState.WON


def test_memory_has_no_noise_and_differences_below_two_percent_do_not_count() -> None:
    alike, less = (
        Trial(1, {"shared_buffers": "64MB"}, None, (TrialRound(0, 0, 0, by_aim={Aim.MEMORY: log}),))
        for log in (-0.01, -0.03)
    )
    assert front_of([alike], (Aim.MEMORY,)) == ()
    assert front_of([less], (Aim.MEMORY,)) == (less,)


def test_members_are_neither_dominated_nor_like_a_simpler_one() -> None:
    both = trial(4, 0.25, -0.35)
    longer = trial(5, 0.40, 0.0, changes=4)
    worse = trial(6, 0.10, -0.20)
    nothing = trial(7, 0.0, 0.0)
    found = front_of([FAST, SMALL, both, longer, worse, nothing], AIMS)
    assert [one.number for one in found] == [1, 2, 4]


def test_failed_trials_are_no_members() -> None:
    assert front_of([trial(1, 0.5, -0.5, state="failed")], AIMS) == ()
    assert front_of([], AIMS) == ()


def test_there_are_six_members_at_most() -> None:
    many = [trial(n, 0.1 * n, -0.1 * (10 - n), count=3) for n in range(1, 11)]
    assert len(front_of(many, AIMS)) == 6


SPACE = Space(
    (
        Dimension("wal_compression", Layer.APPLICATION, ("lz4", "pglz"), "off"),
        Dimension("shared_buffers", Layer.APPLICATION, ("1GB", "2GB"), "128MB", planned="1GB"),
        Dimension("jit", Layer.APPLICATION, ("off",), "on"),
        Dimension("work_mem", Layer.APPLICATION, ("16MB", "64MB"), "4MB"),
    )
)
EFFECTS: dict[tuple[str, str], tuple[float, float]] = {  # ln of throughput and of WAL
    ("wal_compression", "lz4"): (-0.06, -0.5),
    ("wal_compression", "pglz"): (-0.25, -0.5),
    ("shared_buffers", "1GB"): (0.2, 0.0),
    ("shared_buffers", "2GB"): (0.1, 0.0),
}


@dataclass
class Machine:
    """Measures points whose effects are known, with noise."""

    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(3))

    def __call__(self, incumbent: Point, candidate: Point) -> TrialRound:
        assert not incumbent
        known = [EFFECTS.get(pair, (0.0, 0.0)) for pair in candidate.items()]
        throughput, wal = (
            sum(values) + float(self.random.normal(0, 0.01))
            for values in zip((0.0, 0.0), *known, strict=True)
        )
        by_aim = {Aim.THROUGHPUT: throughput, Aim.WAL: wal}
        return TrialRound(0.0, throughput, 0.0, by_aim=by_aim)


def searched(sampler: str, count: int) -> Iterator[Trial]:
    weighted = WeightedAims(lambda seed: load()[sampler].make(SPACE, seed), AIMS, np.random.default_rng(1))
    found = search(weighted, Machine(), lambda _: None, lambda _: "", race=ForTheFront(AIMS))
    return (one for _, one in zip(range(count), found, strict=False))


@pytest.mark.parametrize("sampler", ["guided", "random"])
def test_a_search_finds_both_ends_of_a_known_front(sampler: str) -> None:
    found = front_of(list(searched(sampler, 25)), AIMS)
    points = [one.point for one in found]
    assert any(one.get("shared_buffers") == "1GB" and "wal_compression" not in one for one in points)
    assert any(one.get("shared_buffers") == "1GB" and one.get("wal_compression") == "lz4" for one in points)
    assert not any(one.get("wal_compression") == "pglz" for one in points)


def test_the_plan_is_the_first_trial_and_nobody_is_measured_beside_it() -> None:
    first = next(searched("guided", 1))
    assert first.point == {"shared_buffers": "1GB"}
    assert first.incumbent is None
    assert math.isclose(first.by_aim[Aim.THROUGHPUT], 0.2, abs_tol=0.05)
