"""A search that begins with configurations of earlier ones."""

from __future__ import annotations

import pytest

from pgdyno.model.plans.plan import Layer
from pgdyno.model.tuning.space import BUILD, Dimension, Point, Space
from pgdyno.model.tuning.tuning import TrialRound, TrialState
from pgdyno.tune.search.samplers import load
from pgdyno.tune.search.searching import search
from pgdyno.tune.search.warm_start import FirstPoints, point_within

SPACE = Space(
    (
        Dimension("shared_buffers", Layer.APPLICATION, ("1000", "4000"), "128", planned="4000"),
        Dimension("commit_delay", Layer.APPLICATION, ("20", "100"), "0"),
        Dimension("wal_compression", Layer.APPLICATION, ("pglz", "lz4"), "off"),
        Dimension(BUILD, Layer.COMPILER, ("built-1",), "the wheel's"),
    )
)


def number_of(_key: str, value: str) -> float | None:
    return float(value) if value.isdigit() else None


@pytest.mark.parametrize(
    ("settings", "point"),
    [
        ({"shared_buffers": "1000"}, {"shared_buffers": "1000"}),
        ({"shared_buffers": "1900"}, {"shared_buffers": "1000"}),  # 1.9 times; 4000 is 2.1 times
        ({"shared_buffers": "2100"}, {"shared_buffers": "4000"}),
        ({"shared_buffers": "64000"}, {"shared_buffers": "4000"}),
        ({"shared_buffers": "130"}, {}),  # the one found is nearest
        ({"commit_delay": "0"}, {}),
        ({"commit_delay": "30"}, {"commit_delay": "20"}),
        ({"wal_compression": "lz4"}, {"wal_compression": "lz4"}),
        ({"wal_compression": "zstd"}, {}),  # of names none is nearest
        ({BUILD: "built-1", "jit": "off"}, {BUILD: "built-1"}),
        ({BUILD: "built-2"}, {}),
        ({}, {}),
    ],
)
def test_a_configuration_becomes_the_nearest_point(settings: Point, point: Point) -> None:
    assert point_within(SPACE, settings, number_of) == point


@pytest.mark.parametrize("name", ["guided", "random"])
def test_first_points_are_tried_after_the_plan_and_before_the_samplers_own(name: str) -> None:
    first = [SPACE.plan, {"shared_buffers": "1000"}, {"wal_compression": "lz4"}]
    sampler = FirstPoints(load()[name].make(SPACE, 1), list(first))

    def measure(incumbent: Point, candidate: Point) -> TrialRound:
        lead = 0.3 * (len(candidate) - len(incumbent)) - 0.1
        return TrialRound(lead, lead, 0.0)

    trials = search(sampler, measure, lambda _: None, lambda _: "")
    points = [trial.point for _, trial in zip(range(5), trials, strict=False)]
    assert points[:3] == first
    assert points[3] not in first


def test_a_first_point_has_to_win_like_any_other() -> None:
    sampler = FirstPoints(load()["guided"].make(SPACE, 1), [{"wal_compression": "lz4"}])

    def measure(incumbent: Point, candidate: Point) -> TrialRound:
        assert (incumbent, candidate) == ({}, {"wal_compression": "lz4"})
        return TrialRound(-0.2, -0.2, 0.0)

    trial = next(search(sampler, measure, lambda _: None, lambda _: ""))
    assert (trial.point, trial.state) == ({"wal_compression": "lz4"}, TrialState.LOST)
