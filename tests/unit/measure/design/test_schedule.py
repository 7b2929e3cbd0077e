"""The order of turns is balanced, random and repeatable."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from pgdyno.measure.design.schedule import (
    alternating,
    connection_order,
    counted_turns,
    for_arms,
    seats,
    slice_order,
    stretches_s,
    trial_order,
    window_ends,
    writing_time_s,
)
from pgdyno.model.experiments.experiment import Design, DesignKind
from pgdyno.model.experiments.workload import DataSet, ResetPolicy, Step, Workload


def test_two_arms_take_turns_in_abba_or_baab() -> None:
    order = slice_order(2, 400, np.random.default_rng(7))
    groups = {order[i : i + 4] for i in range(0, 400, 4)}
    assert groups == {(0, 1, 1, 0), (1, 0, 0, 1)}


@pytest.mark.parametrize(
    ("arms", "slices", "slice_s", "ends"),
    [
        (2, 120, 0.05, {19, 39, 59, 79, 99, 119}),  # five groups ABBA of 200 ms each
        (2, 12, 0.5, {3, 7, 11}),  # a group takes two seconds
        (2, 32, 0.05, {31}),  # 12 that would be left belong to the only window
        (2, 52, 0.05, {19, 51}),
        (4, 128, 0.05, {31, 63, 95, 127}),  # two squares of 0.8 s
        (1, 40, 0.05, {19, 39}),
        (1, 1, 10.0, {0}),  # a whole trial
        (2, 4, 0.05, {3}),
    ],
)
def test_windows_are_whole_groups_of_at_least_a_second(
    arms: int, slices: int, slice_s: float, ends: set[int]
) -> None:
    assert window_ends(arms, slices, slice_s) == ends


def test_an_incomplete_group_is_filled_up() -> None:
    assert len(slice_order(2, 6, np.random.default_rng(1))) == 8


def test_a_linear_drift_cancels_between_two_arms() -> None:
    order = np.array(slice_order(2, 40, np.random.default_rng(3)))
    positions = np.arange(40)
    assert positions[order == 0].mean() == positions[order == 1].mean()


@pytest.mark.parametrize("arms", [3, 4, 5])
def test_each_arm_stands_once_at_every_place_of_a_square(arms: int) -> None:
    order = np.array(slice_order(arms, arms * arms, np.random.default_rng(5))).reshape(arms, arms)
    for line in (*order, *order.T):
        assert sorted(line.tolist()) == list(range(arms))


def test_with_four_arms_each_follows_every_other_once_within_the_rows() -> None:
    order = np.array(slice_order(4, 16, np.random.default_rng(5))).reshape(4, 4)
    pairs = [(int(a), int(b)) for row in order for a, b in pairwise(row)]
    assert len(set(pairs)) == len(pairs) == 12


def test_one_arm_alone_always_runs() -> None:
    assert slice_order(1, 3, np.random.default_rng(1)) == (0, 0, 0)


def test_the_same_seed_gives_the_same_order() -> None:
    assert slice_order(2, 80, np.random.default_rng(9)) == slice_order(2, 80, np.random.default_rng(9))


def test_over_the_rounds_every_arm_has_every_seat() -> None:
    assert [seats(3, r) for r in range(3)] == [(0, 1, 2), (1, 2, 0), (2, 0, 1)]


def test_trials_run_every_arm_once() -> None:
    assert sorted(trial_order(4, np.random.default_rng(2))) == [0, 1, 2, 3]


READS = Workload("reads", "", DataSet("rows", 1, 100), ResetPolicy.KEEP)
WRITES = Workload("writes", "", DataSet("rows", 1, 100), ResetPolicy.RESTORE)
STEP = Workload("step", "", DataSet("rows", 1, 100), ResetPolicy.RESTORE, Step("step", {}, 1, "rows", 1, "x"))


@pytest.mark.parametrize(
    ("kind", "workloads", "seconds"),
    [
        # Of two blocks of 6 s, two arms have 3 s each, after 2 s of warm-up; a whole trial is one arm's.
        (DesignKind.DUET, [READS, WRITES], 8.0),
        (DesignKind.DUET, [WRITES, WRITES], 16.0),
        (DesignKind.ALTERNATING, [WRITES], 14.0),
        (DesignKind.DUET, [READS, STEP], 0.0),
    ],
)
def test_a_server_is_written_to_in_its_warm_up_and_in_its_part_of_the_blocks(
    kind: DesignKind, workloads: list[Workload], seconds: float
) -> None:
    design = Design(kind=kind, blocks_per_round=2, block_s=6.0, slice_s=0.5, warmup_s=2.0)
    assert writing_time_s(workloads, design, arms=2) == seconds


@pytest.mark.parametrize(("arms", "rounds", "blocks"), [(2, 6, 2), (8, 6, 2), (9, 12, 1), (17, 12, 1)])
def test_many_servers_have_one_block_a_round_and_as_many_blocks(arms: int, rounds: int, blocks: int) -> None:
    found = for_arms(arms, Design(rounds=6, blocks_per_round=2))
    assert (found.rounds, found.blocks_per_round) == (rounds, blocks)


def test_whole_trials_have_as_many_blocks_as_they_were_given() -> None:
    alternating = Design(kind=DesignKind.ALTERNATING, rounds=6, blocks_per_round=2)
    assert for_arms(12, alternating) == alternating


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_of_four_rounds_two_connect_in_the_reverse_of_a_drawn_order(arms: int) -> None:
    orders = [connection_order(arms, 1, round_) for round_ in range(80)]
    assert all(sorted(order) == list(range(arms)) for order in orders)
    for first in range(0, 80, 4):
        drawn = orders[first]
        assert orders[first : first + 4] == [drawn, drawn[::-1], drawn[::-1], drawn]
    assert len(set(orders[::4])) > 1  # seed 1 is no draw that is always the same
    assert orders == [connection_order(arms, 1, round_) for round_ in range(80)]


def test_whichever_seat_a_server_has_its_load_connects_first_and_last() -> None:
    for first in range(0, 12, 4):
        rounds = range(first, first + 4)
        found = {(seats(2, round_)[0], connection_order(2, 3, round_)[0]) for round_ in rounds}
        assert found == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_only_workloads_that_write_have_stretches_and_wal_for_them() -> None:
    design = Design(stretch_s=15.0)
    assert stretches_s([READS, WRITES, STEP], design) == 30.0
    assert stretches_s([READS, WRITES], Design()) == 0.0
    assert writing_time_s([WRITES], design, 2, has_stretch=True) == writing_time_s([WRITES], design, 2) + 15.0
    assert stretches_s([WRITES], alternating(design)) == 0.0


@pytest.mark.parametrize(
    ("arms", "slices", "counted"),
    [
        (2, 120, 28),  # a quarter is 30: seven groups ABBA
        (2, 12, 4),  # at least one group
        (2, 4, 4),
        (4, 128, 32),  # two squares of 16
        (1, 40, 10),
        (1, 1, 1),  # a whole trial
    ],
)
def test_statements_are_counted_in_a_quarter_of_the_turns(arms: int, slices: int, counted: int) -> None:
    assert counted_turns(arms, slices) == counted
