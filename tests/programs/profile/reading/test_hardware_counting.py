"""Windows in which perf counts, by a counter that every machine has, and a perf that fails."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pgdyno.host.tracing.perf import find_perf
from pgdyno.measure.blocks.transactions import parse
from pgdyno.profile.cycles import Counters
from pgdyno.profile.reading.cycle_sampling import ArmTurns, Turn, counted_of
from pgdyno.profile.reading.hardware_counting import HardwareCounters, find_hardware_counters

pytestmark = pytest.mark.skipif(
    find_perf() is None, reason="perf is not installed: apt-get install linux-perf"
)
NOTHING = Counters(0, 0, 0, 0, 0, 0, 0)
EVENTS = {"instructions": "task-clock"}  # the kernel's own; the figure's name does not matter here


def taken() -> Turn:
    """Let something run for a while."""
    began_ns, monotonic_ns = time.time_ns(), time.monotonic_ns()
    subprocess.run([sys.executable, "-S", "-c", "sum(range(2000000))"], check=True)
    return Turn((began_ns, time.time_ns()), (monotonic_ns, time.monotonic_ns()), NOTHING)


def test_a_windows_counts_are_divided_by_its_transactions(tmp_path: Path) -> None:
    counters = HardwareCounters(tmp_path, find_perf() or "", EVENTS)
    window = counters.count([os.getpid()], taken)
    assert window is not None
    turn, counts = window
    middle_us = sum(turn.wall_ns) // 2000
    log = "".join(f"0 1 500 0 {middle_us // 1000000} {middle_us % 1000000}\n" for _ in range(4))
    found = counted_of(ArmTurns(hardware=[window]), EVENTS, parse(log.encode()))
    assert found is not None
    [figure] = found.events
    assert figure.per_transaction.value == pytest.approx(counts.counts["task-clock"].value / 4)


def test_a_window_without_transactions_is_left_out(tmp_path: Path) -> None:
    window = HardwareCounters(tmp_path, find_perf() or "", EVENTS).count([os.getpid()], taken)
    assert window is not None
    assert counted_of(ArmTurns(hardware=[window]), EVENTS, parse(b"0 1 500 0 1 0\n")) is None


def test_when_perf_fails_it_is_said_and_nothing_more_is_counted(tmp_path: Path) -> None:
    counters = HardwareCounters(tmp_path, find_perf() or "", EVENTS)
    assert counters.count([2**22 - 1], taken) is None
    assert not counters.are_there
    [remark] = counters.remarks
    assert remark.startswith("no hardware counters: ")


def test_this_machine_has_counters_or_says_why_not(tmp_path: Path) -> None:
    found = find_hardware_counters(tmp_path)
    assert found.are_there == ("instructions" in found.events)
    assert found.are_there or found.remarks[0].startswith("no hardware counters: perf ")
