"""CPU time of processes, in nanoseconds where the kernel provides them."""

from __future__ import annotations

from collections.abc import Iterable

from pgdyno.measure.meters._contract import Counters, MeterContext

_TICKS_PER_S = 100  # USER_HZ, fixed by the kernel's ABI for /proc


def cpu_us(context: MeterContext, pids: Iterable[int]) -> Counters | None:
    """Return the CPU time, in µs, of live processes and of exited children of the first one.

    Live processes count in nanoseconds, with all threads. The time of exited children is in their parent's
    cutime and cstime, in ticks. None if no process could be read.
    """
    live_ns, ended_ticks, is_seen = 0, 0, False
    for position, pid in enumerate(pids):
        used_ns = context.cpu_ns(pid)
        if used_ns is not None:
            live_ns, is_seen = live_ns + used_ns, True
        if position == 0:
            ended_ticks = _ended_children_ticks(context.read_process(pid, "stat"))
    return (live_ns / 1000 + ended_ticks * 1e6 / _TICKS_PER_S,) if is_seen else None


def _ended_children_ticks(stat: str | None) -> int:
    """Return the sum of fields 16 and 17 of /proc/PID/stat; field 2 is a name that may contain spaces."""
    if stat is None:
        return 0
    fields = stat.rpartition(")")[2].split()
    return int(fields[13]) + int(fields[14])
