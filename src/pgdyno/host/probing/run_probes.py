"""Measure the costs of single kernel operations, in less than a second in total."""

from __future__ import annotations

import json
import mmap
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection
from pathlib import Path

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.tree import Tree, parsed
from pgdyno.host.machine.cpu_times import ALL_CPUS, CpuTimes, parse_cpu_times
from pgdyno.host.probes import Probes, WakeUp

_CALLS = 20_000
_PAGES = 4_000
_SYNCS = 50
_SYNCS_LIMIT_S = 0.5
_WAL_PAGE_BYTES = 8192
_REPEATS = 5  # the fastest is used: other load only makes it slower


def run_probes(directory: Path, tree: Tree | None = None) -> Probes:
    """Measure all costs. A file in ``directory`` is written, synchronised and removed.

    Units: as in the fields' names. A value that cannot be measured is unknown, with the reason.
    """
    tree = tree or Tree()
    before = _cpu_times(tree)
    wake_up = measure_wake_up()
    system_call, page_fault = measure_system_call_ns(), measure_page_fault_ns()
    fsync = measure_fsync_us(directory)
    return Probes(wake_up, system_call, page_fault, fsync, stolen_between(before, _cpu_times(tree)))


def measure_system_call_ns() -> Fact[float]:
    """Return the time of getppid in excess of a Python call without a system call."""

    def per_call_ns(function: Callable[[], object]) -> float:
        began = time.perf_counter_ns()
        for _ in range(_CALLS):
            function()
        return (time.perf_counter_ns() - began) / _CALLS

    with_system_call = min(per_call_ns(os.getppid) for _ in range(_REPEATS))
    without = min(per_call_ns(sys.getrecursionlimit) for _ in range(_REPEATS))
    return Fact(max(0.0, with_system_call - without), f"getppid, fastest of {_REPEATS} times {_CALLS:,}")


def measure_page_fault_ns() -> Fact[float]:
    """Return the time of the first write to a fresh memory page, zeroing included."""

    def per_page_ns() -> float:
        with mmap.mmap(-1, _PAGES * mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            memory.madvise(mmap.MADV_NOHUGEPAGE)
            began = time.perf_counter_ns()
            memory[:: mmap.PAGESIZE] = bytes(_PAGES)
            return (time.perf_counter_ns() - began) / _PAGES

    source = f"first write to {mmap.PAGESIZE // 1024} kB of memory, fastest of {_REPEATS} times {_PAGES:,}"
    try:
        return Fact(min(per_page_ns() for _ in range(_REPEATS)), source)
    except OSError as error:  # a kernel without transparent huge pages rejects MADV_NOHUGEPAGE
        return Fact(Unknown(os.strerror(error.errno or 0).lower()), source)


def measure_fsync_us(directory: Path) -> Fact[float]:
    """Return the time of overwriting 8 kB of a file and synchronising it."""
    source = f"write and fsync of 8 kB in {directory}"
    page = bytes(_WAL_PAGE_BYTES)
    times: list[float] = []
    try:
        with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
            ends = time.perf_counter() + _SYNCS_LIMIT_S
            while len(times) <= _SYNCS and (len(times) < 2 or time.perf_counter() < ends):
                began = time.perf_counter_ns()
                os.pwrite(file.fileno(), page, 0)
                os.fsync(file.fileno())
                times.append((time.perf_counter_ns() - began) / 1000)
    except OSError as error:
        return Fact(Unknown(os.strerror(error.errno or 0).lower()), source)
    counted = times[1:]  # the first one extended the file
    return Fact(statistics.median(counted), f"{source}, median of {len(counted)}")


def stolen_between(before: Fact[tuple[float, float]], after: Fact[tuple[float, float]]) -> Fact[float]:
    """Return the share of the CPUs' time that the hypervisor gave to others."""
    if isinstance(before.value, Unknown) or isinstance(after.value, Unknown):
        return Fact(Unknown("could not read CPU times"), before.source)
    stolen, total = (late - early for early, late in zip(before.value, after.value, strict=True))
    return Fact(stolen / total if total else Unknown("no time has passed"), before.source)


def _cpu_times(tree: Tree) -> Fact[tuple[float, float]]:
    """Return the stolen and the total time of all CPUs, in seconds."""

    def stolen_and_all(times: dict[str, CpuTimes]) -> tuple[float, float]:
        return times[ALL_CPUS].steal_s, times[ALL_CPUS].total_s

    return parsed(tree.read("/proc/stat", parse_cpu_times), stolen_and_all)


PROGRAM = Path(__file__).with_name("_wakeup_program.py")
"""It does not need pgdyno, and can run on another host."""

_TIMEOUT_S = 20.0  # for a measurement of 0.2 s, even on a busy machine


def measure_wake_up(cpus: Collection[int] | None = None) -> WakeUp:
    """Measure between the first and the last of these CPUs; None means the CPUs in pgdyno's affinity mask.

    Units: µs. Unknown with only one CPU, or if a process cannot be pinned.
    """
    usable = sorted(os.sched_getaffinity(0) if cpus is None else cpus)
    if len(usable) < 2:
        return unknown_wake_up("there is one CPU, so that nothing wakes another")
    waker, woken = usable[0], usable[-1]
    command = [sys.executable, "-I", "-S", str(PROGRAM), str(waker), str(woken)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return unknown_wake_up(f"the measurement took longer than {_TIMEOUT_S:g} s")
    if done.returncode != 0:
        return unknown_wake_up((done.stderr.strip().splitlines() or ["no error message"])[-1])
    return parse_wake_up(done.stdout, f"CPU {waker} wakes a process on CPU {woken}")


def parse_wake_up(text: str, source: str) -> WakeUp:
    """Return the medians of the times in the program's output."""
    times = json.loads(text)
    return wake_up_of(times["idle_us"], times["busy_us"], source)


def wake_up_of(idle_us: Collection[float], busy_us: Collection[float], source: str) -> WakeUp:
    """Return the medians of times with the woken CPU idle, and with it kept busy."""
    return WakeUp(_median(idle_us, source), _median(busy_us, source))


def _median(times_us: Collection[float], source: str) -> Fact[float]:
    if not times_us:
        return Fact(Unknown("no process woke up within the time limit"), source)
    return Fact(statistics.median(times_us), f"{source}, median of {len(times_us)}")


def unknown_wake_up(reason: str) -> WakeUp:
    """Return a result with unknown times, for ``reason``."""
    fact: Fact[float] = Fact(Unknown(reason), "two processes on two CPUs")
    return WakeUp(fact, fact)
