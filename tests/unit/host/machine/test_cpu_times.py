"""CPU times from /proc/stat: which CPUs, and which of their times."""

from __future__ import annotations

import os

import pytest

from pgdyno.base.errors import ServerError
from pgdyno.base.facts import Unknown
from pgdyno.host.machine.cpu_times import CpuTimes, parse_cpu_times, read_host_cpu

STAT = """cpu  900 0 900 9000 0 0 0 90 0 0
cpu0 100 10 20 500 5 1 2 3 0 0
cpu1 200 0 40 500 5 0 0 0 0 0
cpu10 700 0 0 0 0 0 0 70 0 0
intr 1
"""


def test_only_the_cpus_in_use_are_counted() -> None:
    found = read_host_cpu({0, 1}, STAT)
    assert found.busy_s == pytest.approx((100 + 10 + 20 + 1 + 2 + 200 + 40) / 100)
    assert found.steal_s == pytest.approx(3 / 100)


def test_busy_is_neither_idle_nor_waiting_nor_stolen() -> None:
    found = parse_cpu_times(STAT)
    assert not isinstance(found, Unknown)
    assert list(found) == ["cpu", "cpu0", "cpu1", "cpu10"]
    assert found["cpu0"] == CpuTimes(busy_s=1.33, steal_s=0.03, total_s=6.41)


def test_time_of_processes_that_only_keep_cpus_awake_is_left_out() -> None:
    text = "cpu  0 0 0 0 0 0 0 0\ncpu0 100 200 300 0 0 0 0 5\n"
    all_of_it = read_host_cpu([0], text)
    mine = read_host_cpu([0], text, without=[os.getpid()])
    assert mine.steal_s == all_of_it.steal_s
    assert mine.busy_s < all_of_it.busy_s


@pytest.mark.parametrize("text", ["", "cpu 1 2 3", "cpu0 1 2 3 4 5 6 7 8", "cpu a b c d e f g h"])
def test_a_text_without_times_of_all_cpus_is_an_error_that_says_so(text: str) -> None:
    assert parse_cpu_times(text) == Unknown("no CPU times found")
    with pytest.raises(ServerError) as caught:
        read_host_cpu([0], text)
    assert str(caught.value) == "could not read CPU times\nDETAIL:  no CPU times found"
