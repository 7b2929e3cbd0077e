"""Busy and stolen CPU time since boot, and our own, read at the end of each window of turns.

busy, stolen   /proc/stat, of the CPUs that serve or issue load, in ticks of 10 ms
ours           processes of the arms' servers, also those that started since; the load's; our own
writeback      kernel threads that write what the servers have left in the page cache: nobody knows for which
               of them, so that it is charged to no arm, and it is no disturbance
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgdyno.host.host_cpu import HostCpu
from pgdyno.host.machine.cpu_times import WritebackThreads, read_host_cpu
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.measure.meters._cpu import cpu_us
from pgdyno.model.experiments.experiment import Slice


@dataclass(frozen=True)
class CpuReading:
    """CPU time so far, in seconds."""

    host: HostCpu
    ours_s: float
    cpus: int
    writeback: Mapping[int, tuple[float, bool]] = field(default_factory=dict)

    @classmethod
    def read(cls, arms: Sequence[Arm], split: CpuSplit, threads: WritebackThreads) -> CpuReading:
        """Read it now. A server on another host has no processes here, and neither has a load host's load."""
        cpus = {*split.server, *split.client}
        host = read_host_cpu(cpus, without=split.spinners)
        servers_us = sum(sum(cpu_us(arm, arm.server_pids()) or ()) for arm in arms)
        loads_us = [] if split.load_host_threads else [sum(arm.client_cpu_us() or ()) for arm in arms]
        ours_s = (servers_us + sum(loads_us)) / 1e6 + time.process_time()
        return cls(host, ours_s, len(cpus), threads.read(cpus))

    def closing(self, last: Slice, later: CpuReading) -> Slice:
        """Return the last slice of a window with the CPU time of other processes since this reading."""
        capacity_s = max(later.host.at_s - self.host.at_s, 1e-9) * self.cpus
        foreign_s = later.host.busy_s - self.host.busy_s - (later.ours_s - self.ours_s)
        foreign_s -= _written_s(self.writeback, later.writeback)
        return replace(
            last,
            steal_share=max(0.0, later.host.steal_s - self.host.steal_s) / capacity_s,
            foreign_cpu_share=max(0.0, foreign_s) / capacity_s,
        )


def _written_s(earlier: Mapping[int, tuple[float, bool]], later: Mapping[int, tuple[float, bool]]) -> float:
    """Return the CPU time between two readings of threads that wrote at either of them."""
    both = ((earlier[pid], now) for pid, now in later.items() if pid in earlier)
    return sum(now_s - then_s for (then_s, did), (now_s, does) in both if did or does)
