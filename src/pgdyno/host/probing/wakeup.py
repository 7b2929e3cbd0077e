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

from pgdyno.model.facts import Fact, Unknown
from pgdyno.model.hosts.probes import WakeUp

_PROGRAM = Path(__file__).with_name("_wakeup_program.py")
_TIMEOUT_S = 20.0  # for a measurement of 0.2 s, on a machine that is busy with other things


def measure_wake_up(cpus: Collection[int] | None = None) -> WakeUp:
    """Measure between the first and the last of these CPUs; None stands for those that we may use.

    Units: µs. Unknown with one CPU alone, or where a process cannot be pinned.
    """
    usable = sorted(os.sched_getaffinity(0) if cpus is None else cpus)
    if len(usable) < 2:
        return _unknown("there is one CPU, so that nothing wakes another")
    waker, woken = usable[0], usable[-1]
    command = [sys.executable, "-I", "-S", str(_PROGRAM), str(waker), str(woken)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return _unknown(f"measuring it took longer than {_TIMEOUT_S:g} s")
    if done.returncode != 0:
        return _unknown((done.stderr.strip().splitlines() or ["no reason was given"])[-1])
    return parse_wake_up(done.stdout, f"CPU {waker} wakes a process on CPU {woken}")


def parse_wake_up(text: str, source: str) -> WakeUp:
    """Return the medians of the times that the program has printed."""
    times = json.loads(text)
    idle, busy = (_median(times[name], source) for name in ("idle_us", "busy_us"))
    return WakeUp(idle, busy)


def _median(times_us: Collection[float], source: str) -> Fact[float]:
    if not times_us:
        return Fact(Unknown("no process could be woken in time"), source)
    return Fact(statistics.median(times_us), f"{source}, median of {len(times_us)}")


def _unknown(reason: str) -> WakeUp:
    fact: Fact[float] = Fact(Unknown(reason), "two processes on two CPUs")
    return WakeUp(fact, fact)
