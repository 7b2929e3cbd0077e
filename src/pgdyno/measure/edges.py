"""Read an arm and its host at both ends of a step or a run, and audit the time between."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.host.host import HostCpu
from pgdyno.host.machine.cpu_times import read_host_cpu
from pgdyno.measure.arenas.arm import Arm, read_meters
from pgdyno.measure.blocks.blocks import audit_block
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.measure.meters import MeterModule
from pgdyno.measure.steps.sampler import HostCounters
from pgdyno.model.experiments.experiment import Slice
from pgdyno.model.experiments.metric import SERVER_CPU, Readings


@dataclass(frozen=True)
class Edge:
    """Readings at one end of a step."""

    at_ns: int  # on the wall clock, which may be set meanwhile
    cpu: HostCpu
    host: HostCounters
    readings: Readings
    own_cpu_s: float

    @classmethod
    def read(cls, arm: Arm, meters: Sequence[MeterModule], split: CpuSplit) -> Edge:
        """Read it now."""
        return cls(
            at_ns=time.time_ns(),
            cpu=read_host_cpu({*split.server, *split.client}, without=split.spinners),
            host=HostCounters.read(arm),
            readings=read_meters(meters, arm),
            own_cpu_s=time.process_time(),
        )


def audit_between(
    began: Edge, ended: Edge, delta: Readings, client_cpu_us: float, split: CpuSplit
) -> dict[str, float]:
    """Return the inputs of the void rules for the time between two edges.

    A load host's load takes nothing here.
    """
    server_us, wall_s = sum(delta.get(SERVER_CPU, ())), ended.cpu.at_s - began.cpu.at_s
    load_us = 0.0 if split.load_host_threads else client_cpu_us
    ours_s = (server_us + load_us) / 1e6 + ended.own_cpu_s - began.own_cpu_s
    whole = Slice(0, began.at_ns, began.at_ns + int(wall_s * 1e9), ())
    host = (began.cpu, ended.cpu)
    return audit_block([whole], wall_s, host, split, ours_s=ours_s, client_s=(client_cpu_us / 1e6,))
