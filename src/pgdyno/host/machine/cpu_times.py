"""CPU times since boot: of CPUs, and of the kernel threads that write to disks.

This is the only parser of the CPU lines of /proc/stat. Format: proc_stat(5). User time includes guest time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import ServerError
from pgdyno.base.facts import Unknown
from pgdyno.host.host import HostCpu
from pgdyno.host.processes.processes import TICKS_PER_S

ALL_CPUS = "cpu"
_PROC, _BLOCK_DEVICES = Path("/proc"), Path("/sys/dev/block")
_WORKER = "kworker/"
_OF_ANY_DEVICE = ("writeback", "ext4-rsv-conversion", "kblockd")
_LAST_CPU = 36  # field 39 of proc_pid_stat(5), as an index from the field after the name
_FIELDS = 8  # user, nice, system, idle, iowait, irq, softirq, steal


@dataclass(frozen=True)
class CpuTimes:
    """Times of one CPU or of all CPUs, in seconds. Busy: user, nice, system, irq and softirq."""

    busy_s: float
    steal_s: float
    total_s: float


def parse_cpu_times(text: str) -> dict[str, CpuTimes] | Unknown:
    """Return the times by name: ``cpu`` is the sum of all CPUs, ``cpu0`` is the first CPU."""
    lines = [line.split() for line in text.splitlines() if line.startswith(ALL_CPUS)]
    try:
        found = {name: _times([int(word) for word in words[:_FIELDS]]) for name, *words in lines}
    except ValueError:
        return Unknown("no CPU times found")
    return found if ALL_CPUS in found else Unknown("no CPU times found")


def read_host_cpu(
    cpus: Collection[int], text: str | None = None, *, without: Collection[int] = ()
) -> HostCpu:
    """Return the times of ``cpus``; ``text`` replaces /proc/stat in tests.

    The time of the processes in ``without``, which keep CPUs awake, is subtracted from the busy time.
    Raises: ServerError if the kernel does not show the times.
    """
    found = parse_cpu_times(Path("/proc/stat").read_text() if text is None else text)
    if isinstance(found, Unknown):
        raise ServerError("could not read CPU times", detail=found.reason)
    chosen = [found[f"{ALL_CPUS}{cpu}"] for cpu in cpus]
    idled_s = sum(map(_running_ns, without)) / 1e9
    busy_s, steal_s = sum(one.busy_s for one in chosen), sum(one.steal_s for one in chosen)
    return HostCpu(time.monotonic(), busy_s - idled_s, steal_s)


@dataclass(frozen=True)
class WritebackThreads:
    """Kernel threads that may write to the devices with the servers' data and WAL.

    kworker threads serve all devices. Each is named after its current or last work: the writeback of one
    device, or work that may be for any file system or device. Journals of file systems have separate threads.
    """

    pids: tuple[int, ...] = ()
    names: tuple[str, ...] = ()  # prefixes or suffixes of the names of threads working for these devices

    @classmethod
    def of(cls, postmasters: Collection[int]) -> WritebackThreads:
        """Return the threads for these servers, without servers whose directories are not readable."""
        devices = {device for pid in postmasters for device in _devices(pid)}
        names = tuple(sorted({name for device in devices for name in _thread_names(device)}))
        if not names:
            return cls()
        wanted = tuple(f"({name}" for name in (_WORKER, *names))
        pids = [int(one.name) for one in _PROC.iterdir() if one.name.isdigit()]
        return cls(tuple(pid for pid in pids if _stat(pid).partition(" ")[2].startswith(wanted)), names)

    def read(self, cpus: Collection[int]) -> dict[int, tuple[float, bool]]:
        """Return each thread's CPU time in seconds, and whether it works for these devices on ``cpus``."""
        times = {}
        for pid in self.pids:
            with suppress(OSError, ValueError):  # it exited: the kernel ends idle workers
                time_s = _running_ns(pid) / 1e9
                name, _, fields = _stat(pid).partition("(")[2].rpartition(") ")
                is_ours = name.startswith(self.names) or name.endswith(self.names)
                times[pid] = (time_s, is_ours and int(fields.split()[_LAST_CPU]) in cpus)
        return times


def written_s(earlier: Mapping[int, tuple[float, bool]], later: Mapping[int, tuple[float, bool]]) -> float:
    """Return the CPU time, between two readings, of the threads that were writing at either of them."""
    both = ((earlier[pid], now) for pid, now in later.items() if pid in earlier)
    return sum(now_s - then_s for (then_s, did), (now_s, does) in both if did or does)


def _devices(postmaster: int) -> Iterator[int]:
    """Yield the devices with a server's data and WAL; its working directory is its data directory."""
    for place in ("cwd", "cwd/pg_wal"):
        with suppress(OSError):
            yield (_PROC / str(postmaster) / place).stat().st_dev


def _thread_names(device: int) -> Iterator[str]:
    """Yield prefixes or suffixes of the names of threads that write to a device: flush-254:0, jbd2/vda1-."""
    place = _BLOCK_DEVICES / f"{os.major(device)}:{os.minor(device)}"
    if not place.exists():  # not a block device: tmpfs or a stacked file system
        return
    name = place.resolve().name
    disk = place.resolve().parent if (place / "partition").exists() else place
    yield f"flush-{(disk / 'dev').read_text().strip()}"
    yield from (f"jbd2/{name}-", f"xfsaild/{name}", f"xfs-cil/{name}", f"xfs-conv/{name}")
    yield from _OF_ANY_DEVICE


def _stat(pid: int) -> str:
    with suppress(OSError):  # the process exited
        return (_PROC / str(pid) / "stat").read_text()
    return ""


def _times(ticks: list[int]) -> CpuTimes:
    """Return the times from the numbers of a CPU line. Raises: ValueError if there are too few."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = ticks
    busy = user + nice + system + irq + softirq
    return CpuTimes(busy / TICKS_PER_S, steal / TICKS_PER_S, sum(ticks) / TICKS_PER_S)


def _running_ns(pid: int) -> int:
    """Return a process's CPU time: the first number in its schedstat."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
