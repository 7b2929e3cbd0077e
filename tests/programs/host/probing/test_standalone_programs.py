"""The two programs that run as files of their own: their functions, called within this process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pgdyno.host.probing import _spin_program, _wakeup_program


@pytest.fixture
def woken_cpu() -> int:
    """A CPU that this process may use; a test of the functions takes no second one."""
    return min(os.sched_getaffinity(0))


@pytest.fixture
def input_pipe() -> Iterator[int]:
    """A pipe as standard input; yields the end that is written to, which the test closes."""
    before = os.dup(0)
    reading, writing = os.pipe()
    os.dup2(reading, 0)
    os.close(reading)
    yield writing
    os.dup2(before, 0)
    os.close(before)


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


def test_spinning_ends_with_the_input(input_pipe: int) -> None:
    spinning = threading.Thread(target=_spin_program.spin)
    spinning.start()
    spinning.join(timeout=0.05)
    assert spinning.is_alive()
    os.close(input_pipe)
    spinning.join(timeout=120)
    assert not spinning.is_alive()
