"""Polling stays in a plan only where it shortens a wake-up, on a directory that looks like a machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.apply.machines import make_machine, put, value_of

from pgdyno.apply.host_state import HostState
from pgdyno.apply.runs.host_run import host_writers
from pgdyno.host.cpu_idling import POLL_NS
from pgdyno.measure.awake import Probe, with_proven_polling
from pgdyno.model.plans.plan import Change, Effect, Layer, Plan, PlanLine, Risk, Skipped


def line(lever: str, key: str, value: str) -> PlanLine:
    change = Change(lever, "kernel", key, None, value, Effect.IMMEDIATE)
    return PlanLine(change, Layer.SYSTEM, "because", "a paper", Risk.SHARED, "pgdyno revert")


POLLING, OTHER = line("halt_polling", POLL_NS, "200000"), line("swappiness", "/proc/sys/vm/swappiness", "1")
PLAN = Plan((OTHER, POLLING), (), (), None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_machine(tmp_path / "machine")
    put(root, POLL_NS, "0")
    return root


@pytest.fixture
def state(root: Path, tmp_path: Path) -> Iterator[HostState]:
    yield HostState(tmp_path / "journal", host_writers(root))
    assert value_of(root, POLL_NS) == "0"
    assert value_of(root, "/proc/sys/vm/swappiness") == "60"


def wake_ups(root: Path, polled_us: float) -> Probe:
    return lambda: polled_us if value_of(root, POLL_NS) == "200000" else 16.46


def test_polling_that_shortens_a_wake_up_stays_with_the_times(root: Path, state: HostState) -> None:
    made = with_proven_polling(PLAN, state, wake_ups(root, 3.42))
    assert [one.change for one in made.lines] == [OTHER.change, POLLING.change]
    assert made.lines[0] == OTHER
    assert made.lines[1].reason == "because; tried: 3.4 µs instead of 16.5 µs"


def test_polling_that_does_not_is_left_alone(root: Path, state: HostState) -> None:
    made = with_proven_polling(PLAN, state, wake_ups(root, 16.0))
    assert made.lines == (OTHER,)
    reason = "left alone: polling does not shorten a wake-up (16 µs while active)"
    assert made.skipped == (Skipped("halt_polling", reason),)


def test_a_plan_without_polling_is_not_tried(state: HostState) -> None:
    made = Plan((OTHER,), (), (), None)
    assert with_proven_polling(made, state, lambda: pytest.fail("nothing is measured")) is made
