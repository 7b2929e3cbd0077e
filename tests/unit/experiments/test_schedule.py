"""The order of turns is balanced, random and repeatable."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from pgdyno.experiments.schedule import seats, slice_order, trial_order


def test_two_arms_take_turns_in_abba_or_baab() -> None:
    order = slice_order(2, 400, np.random.default_rng(7))
    groups = {order[i : i + 4] for i in range(0, 400, 4)}
    assert groups == {(0, 1, 1, 0), (1, 0, 0, 1)}


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
