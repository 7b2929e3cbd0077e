"""CPU times since boot. This is the only parser of the CPU lines of /proc/stat.

Format: proc_stat(5). Guest time is contained in user time.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from pgdyno.host.processes.processes import TICKS_PER_S
from pgdyno.model.errors import ServerError
from pgdyno.model.facts import Unknown
from pgdyno.model.hosts.host_cpu import HostCpu

ALL_CPUS = "cpu"
_FIELDS = 8  # user, nice, system, idle, iowait, irq, softirq, steal


@dataclass(frozen=True)
class CpuTimes:
    """Times of one CPU, or of all, in seconds. Busy: user, nice, system, irq and softirq."""

    busy_s: float
    steal_s: float
    total_s: float


def parse_cpu_times(text: str) -> dict[str, CpuTimes] | Unknown:
    """Return the times by name: ``cpu`` is the sum of all CPUs, ``cpu0`` the first one."""
    lines = [line.split() for line in text.splitlines() if line.startswith(ALL_CPUS)]
    try:
        found = {name: _times([int(word) for word in words[:_FIELDS]]) for name, *words in lines}
    except ValueError:
        return Unknown("no CPU times in it")
    return found if ALL_CPUS in found else Unknown("no CPU times in it")


def read_host_cpu(
    cpus: Collection[int], text: str | None = None, *, without: Collection[int] = ()
) -> HostCpu:
    """Return the times of ``cpus``; ``text`` replaces /proc/stat in tests.

    ``without`` are processes whose time is not work: those that keep CPUs awake.
    Raises: ServerError if the kernel does not show the times.
    """
    found = parse_cpu_times(Path("/proc/stat").read_text() if text is None else text)
    if isinstance(found, Unknown):
        raise ServerError("the CPUs' times cannot be read", detail=found.reason)
    chosen = [found[f"{ALL_CPUS}{cpu}"] for cpu in cpus]
    idled_s = sum(map(_running_ns, without)) / 1e9
    busy_s, steal_s = sum(one.busy_s for one in chosen), sum(one.steal_s for one in chosen)
    return HostCpu(time.monotonic(), busy_s - idled_s, steal_s)


def _times(ticks: list[int]) -> CpuTimes:
    """Return the times of a line's numbers. Raises: ValueError if there are too few."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = ticks
    busy = user + nice + system + irq + softirq
    return CpuTimes(busy / TICKS_PER_S, steal / TICKS_PER_S, sum(ticks) / TICKS_PER_S)


def _running_ns(pid: int) -> int:
    """Return the CPU time of a process: the first number of its schedstat."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
