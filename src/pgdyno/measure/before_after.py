"""Read an arm and its host at the start and the end of a step or a run, and audit the time between."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pgdyno.host.files.tree import Tree
from pgdyno.host.host import DeviceUse, HostCpu, SystemUse
from pgdyno.host.machine.cpu_times import WritebackThreads, read_host_cpu, written_s
from pgdyno.host.machine.usage import DeviceCounters, SystemCounters, device_of, read_device, read_system
from pgdyno.measure.arenas.arm import Arm, read_meters
from pgdyno.measure.blocks.blocks import audit_block
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.measure.meters import MeterModule
from pgdyno.model.experiments.metric import SERVER_CPU, Readings
from pgdyno.model.experiments.slices import Slice


@dataclass(frozen=True)
class HostCounters:
    """Counters of the host at one moment; None where they could not be read."""

    system: SystemCounters | None
    device: DeviceCounters | None

    @classmethod
    def read(cls, arm: Arm) -> HostCounters:
        """Read the counters now."""
        tree = Tree()
        device = read_device(tree, device_of(tree, arm.postmaster_pid))
        return cls(read_system(tree).or_none(), device.or_none())

    def system_until(self, later: HostCounters, wall_s: float) -> SystemUse | None:
        """Return the usage of the whole host since this reading."""
        before, after = self.system, later.system
        if before is None or after is None or after.total_s <= before.total_s:
            return None
        return SystemUse(
            wall_s=wall_s,
            cpus=after.cpus,
            busy_share=(after.busy_s - before.busy_s) / (after.total_s - before.total_s),
            context_switches=after.context_switches - before.context_switches,
        )

    def device_until(self, later: HostCounters, wall_s: float) -> DeviceUse | None:
        """Return the usage of the data directory's block device since this reading."""
        before, after = self.device, later.device
        if before is None or after is None:
            return None
        return DeviceUse(
            wall_s=wall_s,
            reads=after.reads - before.reads,
            read_bytes=after.read_bytes - before.read_bytes,
            writes=after.writes - before.writes,
            written_bytes=after.written_bytes - before.written_bytes,
        )


@dataclass(frozen=True)
class Edge:
    """Readings at one end of a step; ``writeback`` is that of ``WritebackThreads.read``."""

    at_ns: int  # wall clock; it may be set during the step
    cpu: HostCpu
    host: HostCounters
    readings: Readings
    own_cpu_s: float
    writeback: Mapping[int, tuple[float, bool]]

    @classmethod
    def read(cls, arm: Arm, meters: Sequence[MeterModule], split: CpuSplit) -> Edge:
        """Take all readings now."""
        cpus = {*split.server, *split.client}
        return cls(
            at_ns=time.time_ns(),
            cpu=read_host_cpu(cpus, without=split.spinners),
            host=HostCounters.read(arm),
            readings=read_meters(meters, arm),
            own_cpu_s=time.process_time(),
            writeback=WritebackThreads.of(arm.server_pids()[:1]).read(cpus),
        )


def audit_between(
    began: Edge, ended: Edge, delta: Readings, client_cpu_us: float, split: CpuSplit
) -> dict[str, float]:
    """Return the inputs of the void rules for the time between two edges.

    Load from a load host uses no CPU time on this host. Kernel threads that write to the devices with the
    server's data are no disturbance.
    """
    server_us, wall_s = sum(delta.get(SERVER_CPU, ())), ended.cpu.at_s - began.cpu.at_s
    load_us = 0.0 if split.load_host_threads else client_cpu_us
    ours_s = (server_us + load_us) / 1e6 + ended.own_cpu_s - began.own_cpu_s
    ours_s += written_s(began.writeback, ended.writeback)
    whole = Slice(0, began.at_ns, began.at_ns + int(wall_s * 1e9), ())
    host = (began.cpu, ended.cpu)
    return audit_block([whole], wall_s, host, split, ours_s=ours_s, client_s=(client_cpu_us / 1e6,))
