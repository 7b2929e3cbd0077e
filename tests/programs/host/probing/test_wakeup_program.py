"""The program that measures wake-ups: its functions, called within this process."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pgdyno.host.probing import _wakeup_program


@pytest.fixture
def woken_cpu() -> int:
    """A CPU that this process may use; a test of the functions takes no second one."""
    return min(os.sched_getaffinity(0))


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("measure", [_wakeup_program.measure_us, _wakeup_program.measure_busy_us])
def test_every_wakeup_takes_some_time_and_nothing_is_left_open(
    measure: Callable[[int], list[float]], woken_cpu: int
) -> None:
    before = open_files()
    times_us = measure(woken_cpu)
    assert 0 < len(times_us) <= _wakeup_program.SAMPLES
    assert min(times_us) > 0
    assert open_files() == before


def test_a_woken_process_that_has_ended_is_an_error() -> None:
    reading, writing = os.pipe()
    os.close(writing)
    with pytest.raises(ChildProcessError, match="the woken process exited"):
        _wakeup_program._stamp(reading)
    os.close(reading)
