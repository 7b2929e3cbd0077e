"""Arms that change their seats: what a seat does is not taken for noise."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from pgdyno.measure.design.schedule import seats
from pgdyno.measure.verdicts.analysis import analyse
from pgdyno.measure.verdicts.seat_effects import seat_effects, widening
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design, DesignKind, Stopping
from pgdyno.model.experiments.verdict import Verdict

NAMES = ("a", "b", "c", "d", "e", "f")
SEATS = (-0.05, -0.05, -0.01, 0.04, 0.04, 0.03)  # measured, on a virtual machine with two CPUs
DESIGN = Design(blocks_per_round=1)


def blocks(
    random: np.random.Generator, rounds: int, effects: tuple[float, ...] = SEATS, noise: float = 0.02
) -> list[Block]:
    """Arm b is 5 % faster than the others."""
    found = []
    for round_ in range(rounds):
        taken, drift = seats(len(effects), round_), float(random.normal(0, 0.1))
        logs = [
            drift + effects[taken[arm]] + 0.05 * (NAMES[arm] == "b") + float(random.normal(0, noise))
            for arm in range(len(effects))
        ]
        arms = tuple(
            ArmBlock(name, 100, 1.0, {"throughput_tps": 1000 * math.exp(log)})
            for name, log in zip(NAMES, logs, strict=False)
        )
        found.append(Block("select", round_, 0, 0, arms))
    return found


def verdict(measured: list[Block], variant: str = "b", design: Design = DESIGN, arms: int = 6) -> Verdict:
    names = NAMES[:arms]
    verdicts = analyse(measured, workloads=["select"], variants=names, baseline="a", design=design)
    return next(one for one in verdicts if one.variant == variant and one.metric == "throughput_tps")


def test_the_effects_of_seats_are_found() -> None:
    measured = blocks(np.random.default_rng(1), 12, noise=0.001)
    found = seat_effects(measured, "select", "throughput_tps", NAMES, DESIGN)
    assert found is not None
    assert found.effects == pytest.approx(SEATS, abs=0.003)
    assert found.spread == pytest.approx(0.094, abs=0.01)


def test_intervals_are_half_as_wide_as_with_seats_in_them_and_cover_what_they_say() -> None:
    random = np.random.default_rng(2)
    covered, widths = 0, []
    for _ in range(300):
        interval = verdict(blocks(random, 6)).interval
        assert interval is not None
        covered += interval.low <= math.exp(0.05) <= interval.high
        widths.append(interval.high - interval.low)
    assert covered / 300 > 0.93
    assert np.median(widths) < 0.08  # with the seats in it: 0.14


def test_where_seats_do_nothing_intervals_cover_as_well() -> None:
    random = np.random.default_rng(3)
    intervals = [verdict(blocks(random, 6, (0.0,) * 6)).interval for _ in range(300)]
    covered = [one is not None and one.low <= math.exp(0.05) <= one.high for one in intervals]
    assert sum(covered) / 300 > 0.93


@pytest.mark.parametrize(
    "design",
    [replace(DESIGN, kind=DesignKind.ALTERNATING), replace(DESIGN, stopping=Stopping.DECIDED)],
    ids=["trials", "looked-at"],
)
def test_trials_and_looks_are_left_as_they_are(design: Design) -> None:
    measured = blocks(np.random.default_rng(4), 8)
    assert seat_effects(measured, "select", "throughput_tps", NAMES, design) is None


def test_fewer_rounds_than_arms_cannot_tell_seats() -> None:
    measured = blocks(np.random.default_rng(5), 5)
    assert seat_effects(measured, "select", "throughput_tps", NAMES, DESIGN) is None


def test_three_arms_are_left_as_they_are() -> None:
    measured = blocks(np.random.default_rng(6), 9, SEATS[:3])
    assert seat_effects(measured, "select", "throughput_tps", NAMES[:3], DESIGN) is None


def test_rounds_in_which_an_arm_does_not_count_tell_nothing_of_seats() -> None:
    measured = blocks(np.random.default_rng(7), 6)
    void = [replace(measured[0], void="disturbed"), *measured[1:]]
    assert seat_effects(void, "select", "throughput_tps", NAMES, DESIGN) is None


def test_rounds_that_leave_arms_on_some_seats_cannot_tell_them_apart() -> None:
    """With every second round void, an arm has only ever had half of the seats."""
    measured = blocks(np.random.default_rng(8), 16, SEATS[:4])
    even = [replace(one, void="disturbed") if one.round % 2 else one for one in measured]
    assert seat_effects(measured, "select", "throughput_tps", NAMES[:4], DESIGN) is not None
    assert seat_effects(even, "select", "throughput_tps", NAMES[:4], DESIGN) is None


def test_a_degree_of_freedom_is_paid_for() -> None:
    """By hand, 6 rounds: sqrt(5/4) · 4.604 / 4.032, of Student's t at 99.5 %."""
    assert widening(6) == pytest.approx(1.2766, abs=0.001)
