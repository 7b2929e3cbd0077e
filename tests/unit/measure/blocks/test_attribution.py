"""Transactions and CPU time go to the arm that they belong to. Times are in ms, converted at the edge."""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.measure.blocks.attribution import charged_running_s, completed_in_all, count_arm, tail_mean
from pgdyno.measure.blocks.transactions import Transactions
from pgdyno.model.experiments.slices import Slice

MS = 1_000_000


def slices(*turns: tuple[int, int, int]) -> list[Slice]:
    return [Slice(arm, start * MS, end * MS, (0, 0)) for arm, start, end in turns]


def transactions(*completed_and_latency_ms: tuple[float, float]) -> Transactions:
    completed = np.array([round(c * MS) for c, _ in completed_and_latency_ms], dtype=np.int64)
    latency = np.array([round(latency * 1000) for _, latency in completed_and_latency_ms], dtype=np.int64)
    return Transactions(completed, latency)


ABBA = slices((0, 0, 100), (1, 100, 200), (1, 200, 300), (0, 300, 400))


def test_only_transactions_inside_own_slices_count() -> None:
    counted = count_arm(ABBA, 0, transactions((50, 1), (150, 1), (250, 1), (350, 1)), 0)
    assert counted.transactions == 2
    assert counted.running_s == pytest.approx(0.2)


def test_heads_of_slices_count_neither_as_time_nor_as_transactions() -> None:
    counted = count_arm(ABBA, 0, transactions((5, 1), (50, 1), (305, 1), (350, 1)), 10 * MS)
    assert counted.transactions == 2
    assert counted.running_s == pytest.approx(0.18)


def test_a_slice_includes_its_beginning_and_excludes_its_end() -> None:
    counted = count_arm(ABBA, 1, transactions((100, 1), (300, 1)), 0)
    assert counted.transactions == 1


def test_latency_leaves_out_the_time_while_the_arm_was_frozen() -> None:
    # Began at 95 ms, was frozen from 100 to 300 ms, completed at 310 ms: 5 + 10 ms on its running clock.
    counted = count_arm(ABBA, 0, transactions((310, 215)), 0)
    assert counted.latency_us.tolist() == [15_000]


def test_a_transaction_from_before_the_block_counts_but_has_no_latency() -> None:
    counted = count_arm(ABBA, 0, transactions((20, 500)), 0)
    assert (counted.transactions, counted.latency_us.size) == (1, 0)


def test_slices_that_are_left_out_count_neither_as_time_nor_as_transactions() -> None:
    done = transactions((50, 1), (150, 1), (350, 1), (360, 20))
    for is_drained in (False, True):
        counted = count_arm(ABBA, 0, done, 0, is_drained=is_drained, left_out={2, 3})
        assert (counted.transactions, counted.latency_us.tolist()) == (1, [1000])
        assert counted.running_s == pytest.approx(0.1)
    assert count_arm(ABBA, 0, done, 0, is_drained=True, is_long=True, left_out={0}).work == pytest.approx(2.0)


def test_the_running_clock_goes_on_in_a_slice_that_is_left_out() -> None:
    # Began at 95 ms; ran until 100 ms, for all of the slice that is left out, and 10 ms of the last one.
    turns = slices((0, 0, 100), (1, 100, 200), (0, 200, 300), (1, 300, 400), (0, 400, 500))
    counted = count_arm(turns, 0, transactions((410, 315)), 0, left_out={2})
    assert counted.latency_us.tolist() == [115_000]


def test_drained_latencies_are_those_of_transactions_that_began_in_the_counted_part() -> None:
    # The first began in the head; the second ended after its slice, while it was drained; the third inside.
    done = transactions((12, 8), (104, 20), (50, 5))
    counted = count_arm(ABBA, 0, done, 10 * MS, is_drained=True)
    assert sorted(counted.latency_us.tolist()) == [5_000, 20_000]
    assert counted.transactions == 2


def test_what_ended_while_its_slice_was_drained_belongs_to_what_meters_have_seen() -> None:
    done = transactions((12, 8), (104, 20), (50, 5))
    assert completed_in_all(ABBA, 0, done, is_drained=True) == 3
    assert completed_in_all(ABBA, 0, done, is_drained=False) == 2


def test_an_arm_without_transactions_has_a_count_of_zero() -> None:
    counted = count_arm(ABBA, 1, transactions(), 0)
    assert counted.transactions == 0
    assert counted.running_s == pytest.approx(0.2)


def test_background_cpu_is_moved_from_the_victim_to_the_culprit() -> None:
    # On one CPU, 0.1 s of checkpointing by B during A's turn costs A 0.1 s and is owed by B.
    assert charged_running_s(2.0, foreign_cpu_s=0.1, own_frozen_cpu_s=0.0, cpus=1) == pytest.approx(1.9)
    assert charged_running_s(2.0, foreign_cpu_s=0.0, own_frozen_cpu_s=0.1, cpus=1) == pytest.approx(2.1)
    assert charged_running_s(2.0, foreign_cpu_s=0.1, own_frozen_cpu_s=0.0, cpus=4) == pytest.approx(1.975)


def test_of_long_transactions_the_part_within_a_slice_counts() -> None:
    # Slice of 100 ms: one from 10 to 60; one from 60 to 140, half of which lies within; and one of another
    # client, from -20 to 80, four fifths.
    done = transactions((60, 50), (140, 80), (80, 100))
    counted = count_arm(slices((0, 0, 100)), 0, done, 0, is_drained=True, is_long=True)
    assert counted.work == pytest.approx(1 + 0.5 + 0.8)
    assert counted.running_s == pytest.approx(0.1)
    assert count_arm(slices((0, 0, 100)), 0, done, 0, is_drained=True).work == 2


def test_a_closed_loop_of_long_transactions_has_its_rate_whatever_the_slice() -> None:
    # One after the other, 70 ms each: 1000/70 a second; whole ones would be 1, 2, 4 in these slices.
    done = transactions(*((70 * (one + 1), 70) for one in range(10)))
    for end in (100, 150, 330):
        counted = count_arm(slices((0, 0, end)), 0, done, 0, is_drained=True, is_long=True)
        assert counted.work / counted.running_s == pytest.approx(1000 / 70)


def test_transactions_of_many_executions_count_as_so_many_without_a_latency() -> None:
    counted = count_arm(ABBA, 0, transactions((50, 100), (350, 60)), 0, is_drained=True, is_long=True)
    by_execution = counted.by_execution(1000)
    assert (by_execution.transactions, by_execution.running_s) == (2000, counted.running_s)
    # 50 of the first one's 100 ms and 50 of the second one's 60 ms lie within the arm's slices.
    assert by_execution.work == pytest.approx(1000 * (0.5 + 50 / 60))
    assert by_execution.latency_us.size == 0
    assert counted.by_execution(1) is counted


@pytest.mark.parametrize(
    ("latencies", "mean"),
    [
        (range(1, 101), 98.0),  # of 100 the five slowest: 96, 97, 98, 99, 100
        (range(1, 21), 20.0),  # of 20 the slowest
        (range(1, 51), 49.2),  # of 50 two and a half: (50 + 49 + 48 / 2) / 2.5
        (range(1, 31), 29 + 2 / 3),  # of 30 one and a half: (30 + 29 / 2) / 1.5
        ([7, 9, 3], 9.0),  # of fewer than 20 the slowest
        ([5], 5.0),
    ],
)
def test_it_is_the_mean_of_the_slowest_twentieth(latencies: list[int], mean: float) -> None:
    shuffled = np.random.default_rng(1).permutation(np.array(latencies, dtype=np.int64))
    assert tail_mean(shuffled) == pytest.approx(mean)


def test_it_does_not_jump_where_the_number_is_divisible() -> None:
    # Of 199, 200 and 201 transactions ten took 50 ms. The tail has 9.95, 10 and 10.05: only in the last there
    # is room for a part of one that took 1 ms.
    found = [tail_mean(np.array([1000] * (n - 10) + [50_000] * 10)) for n in (199, 200, 201)]
    assert found == pytest.approx([50_000, 50_000, (10 * 50_000 + 0.05 * 1000) / 10.05])


def test_it_grows_evenly_where_the_99th_percentile_jumps() -> None:
    # Of 1000 transactions of 1 ms, some took 50 ms; 50 are the tail.
    def of_stalled(count: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return np.array([1000] * (1000 - count) + [50_000] * count, dtype=np.int64)

    assert [tail_mean(of_stalled(count)) for count in (9, 11)] == pytest.approx([9820.0, 11_780.0])
    assert [np.percentile(of_stalled(count), 99) for count in (9, 11)] == [1000.0, 50_000.0]
