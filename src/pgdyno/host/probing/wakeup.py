"""Wake-up latency of a process on another CPU, which each statement of a client incurs twice."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.probes import WakeUp

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
