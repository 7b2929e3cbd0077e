"""How long an experiment takes, against the durations of recorded ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.measure.decisions.time_needed import time_needed
from pgdyno.measure.design.schedule import alternating
from pgdyno.model.experiments.experiment import Design
from pgdyno.workload.workload_choice import find_workloads

WORKLOADS = tuple(find_workloads(("sysbench-read-only", "sysbench-read-write")).values())
DATA = (WORKLOADS[0].data_set,)


def test_a_round_of_two_arms_takes_as_long_as_in_the_recorded_run() -> None:
    # docs/results/bundles/accelerate-awake.zip: 35.6 … 37.2 s from round to round
    assert time_needed(WORKLOADS, Design(), 2, ()).round_s == pytest.approx(36.5, abs=2)


def test_more_arms_take_whole_squares_of_turns() -> None:
    # Six arms: 36 turns a square. Reading: 144 turns of 50 ms; writing: 36 turns of 500 ms; two blocks each.
    turns_s = 2 * 1.05 * (144 * 0.05 + 36 * 0.5)
    assert time_needed(WORKLOADS, Design(), 6, ()).round_s == pytest.approx(turns_s + 6 * (2 + 2 * 2))


def test_whole_trials_take_each_arm_alone() -> None:
    # Two arms, two workloads: 10 s of trial and 2 s of warm-up each, 2 s for a server, 10 s to switch.
    found = time_needed(WORKLOADS, alternating(Design()), 2, (), switch_s=10.0)
    assert found.round_s == pytest.approx(2 * (2 * 12 + 2 + 10))


def test_what_is_not_loaded_yet_is_waited_for() -> None:
    loaded, not_loaded = (time_needed(WORKLOADS, Design(), 2, data) for data in ((), DATA))
    assert not_loaded.preparation_s - loaded.preparation_s == pytest.approx(DATA[0].size_bytes / 15e6)


@pytest.mark.parametrize(("budget_s", "rounds"), [(600, 14), (60, 1), (10, 0)])
def test_rounds_are_those_that_fit(budget_s: float, rounds: int) -> None:
    found = replace(time_needed(WORKLOADS, Design(), 2, DATA), preparation_s=20.0, round_s=40.0)
    assert found.rounds_within(budget_s) == rounds
    assert found.least_s == 20 + 5 * 40
