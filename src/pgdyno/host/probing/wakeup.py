"""Wake-up latency of a process on another CPU.

Every statement of a client incurs it twice.
"""

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
"""It runs without pgdyno: on another host as well."""

_TIMEOUT_S = 20.0  # for a measurement of 0.2 s, on a machine that is busy with other things


def measure_wake_up(cpus: Collection[int] | None = None) -> WakeUp:
    """Measure between the first and the last of these CPUs; None stands for those that we may use.

    Units: µs. Unknown with one CPU alone, or where a process cannot be pinned.
    """
    usable = sorted(os.sched_getaffinity(0) if cpus is None else cpus)
    if len(usable) < 2:
        return unknown_wake_up("there is one CPU, so that nothing wakes another")
    waker, woken = usable[0], usable[-1]
    command = [sys.executable, "-I", "-S", str(PROGRAM), str(waker), str(woken)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return unknown_wake_up(f"measuring it took longer than {_TIMEOUT_S:g} s")
    if done.returncode != 0:
        return unknown_wake_up((done.stderr.strip().splitlines() or ["no reason was given"])[-1])
    return parse_wake_up(done.stdout, f"CPU {waker} wakes a process on CPU {woken}")


def parse_wake_up(text: str, source: str) -> WakeUp:
    """Return the medians of the times that the program has printed."""
    times = json.loads(text)
    return wake_up_of(times["idle_us"], times["busy_us"], source)


def wake_up_of(idle_us: Collection[float], busy_us: Collection[float], source: str) -> WakeUp:
    """Return the medians of times with the woken CPU idle, and with it kept busy."""
    return WakeUp(_median(idle_us, source), _median(busy_us, source))


def _median(times_us: Collection[float], source: str) -> Fact[float]:
    if not times_us:
        return Fact(Unknown("no process could be woken in time"), source)
    return Fact(statistics.median(times_us), f"{source}, median of {len(times_us)}")


def unknown_wake_up(reason: str) -> WakeUp:
    """Return no times, with the reason."""
    fact: Fact[float] = Fact(Unknown(reason), "two processes on two CPUs")
    return WakeUp(fact, fact)
