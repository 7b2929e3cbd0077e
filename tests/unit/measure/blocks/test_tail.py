"""The mean of the slowest 5 %, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.measure.blocks.tail import tail_mean


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
