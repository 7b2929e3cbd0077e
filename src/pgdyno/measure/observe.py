"""Observe arms that take turns: the slices of a block, stretches of one arm alone, the checkpoint debt.

CPU time since boot is read at the end of each window of turns:

busy, stolen   /proc/stat, for the CPUs that serve or issue load, in ticks of 10 ms
ours           processes of the arms' servers, including those started since; the load; pgdyno itself
writeback      kernel threads that write the servers' dirty pages from the page cache. The server that caused
               them is unknown, so they are charged to no arm; they do not count as a disturbance either
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from numpy.random import Generator as Random

from pgdyno.host.host import HostCpu
from pgdyno.host.machine.cpu_times import WritebackThreads, read_host_cpu, written_s
from pgdyno.load.turns import Turns
from pgdyno.measure.arenas.arm import Arm, ServerClocks, difference, read_meters
from pgdyno.measure.blocks.observation import ObservedBlock
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.measure.design.schedule import counted_turns, slice_order, trial_order, turns_of, window_ends
from pgdyno.measure.meters import MeterModule
from pgdyno.measure.meters._cpu import cpu_us
from pgdyno.measure.statement_counting import StatementCounting
from pgdyno.model.experiments.experiment import Design
from pgdyno.model.experiments.metric import METRICS, SERVER_CPU, WAL_SEGMENTS, Readings
from pgdyno.model.experiments.slices import Slice
from pgdyno.model.experiments.statements import StatementCount
from pgdyno.model.plans.plan import applied_of

_OF_BLOCKS_ALONE = ("checkpoints", WAL_SEGMENTS)  # the final checkpoint's part belongs to no block


@dataclass(frozen=True)
class CpuReading:
    """CPU time so far, in seconds."""

    host: HostCpu
    ours_s: float
    cpus: int
    writeback: Mapping[int, tuple[float, bool]] = field(default_factory=dict)

    @classmethod
    def read(cls, arms: Sequence[Arm], split: CpuSplit, threads: WritebackThreads) -> CpuReading:
        """Take a reading; servers and load on other hosts have no processes here."""
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
        foreign_s -= written_s(self.writeback, later.writeback)
        return replace(
            last,
            steal_share=max(0.0, later.host.steal_s - self.host.steal_s) / capacity_s,
            foreign_cpu_share=max(0.0, foreign_s) / capacity_s,
        )


@dataclass(frozen=True)
class Observer:
    """An observer's design, meters, CPUs and random generator."""

    design: Design
    meters: Sequence[MeterModule]
    split: CpuSplit
    random: Random
    statements: Sequence[StatementCounting] = ()  # of each arm; empty: not counted


def observe_block(
    observer: Observer, arms: Sequence[Arm], turns: Turns, keep: Callable[[Slice], None]
) -> ObservedBlock:
    """Give the arms their turns for one block, between two readings of all meters."""
    design = observer.design
    order = slice_order(len(arms), turns_of(len(arms), design), observer.random)
    servers = ServerClocks.of(arms)
    own_cpu_s = time.process_time()
    before = [read_meters(observer.meters, arm) for arm in arms]
    split = observer.split
    cpus = {*split.server, *split.client}
    host, started_ns = read_host_cpu(cpus, without=split.spinners), time.time_ns()
    slices: list[Slice] = []
    writeback = WritebackThreads.of(_postmasters(arms))
    reading = CpuReading.read(arms, split, writeback)
    ends = window_ends(len(arms), len(order), design.slice_s)
    begun = [one.begin() for one in observer.statements]
    # A driver runs all turns of one command without a rest.
    counted = counted_turns(len(arms), len(order)) if begun else len(order)
    counts: list[Mapping[str, StatementCount] | None] = []
    rested_s = 0.0
    for part in filter(None, (order[:counted], order[counted:])):
        for taken in turns.take(part, slice_s=design.slice_s, head_s=design.head_s, servers=servers):
            done = taken
            if len(slices) in ends:
                earlier, reading = reading, CpuReading.read(arms, split, writeback)
                done = earlier.closing(taken, reading)
            slices.append(done)
            keep(done)
        if len(slices) == counted:  # all servers rest
            began_s = time.monotonic()
            counts = [one.end(was) for one, was in zip(observer.statements, begun, strict=True)]
            rested_s = time.monotonic() - began_s
    host_after = read_host_cpu(cpus, without=split.spinners)
    after = [read_meters(observer.meters, arm) for arm in arms]
    own_cpu_s = time.process_time() - own_cpu_s
    deltas = tuple(difference(b, a) for b, a in zip(before, after, strict=True))
    hosts, known = (host, host_after), tuple(one for one in counts if one is not None)
    has_evicted = len(known) < len(counts)
    block = ObservedBlock(started_ns, tuple(slices), deltas, hosts, own_cpu_s)
    if has_evicted:
        return replace(block, rested_s=rested_s, has_evicted=True)
    return replace(block, rested_s=rested_s, statements=known)


def observe_stretches(observer: Observer, arms: Sequence[Arm], turns: Turns) -> tuple[Slice, ...]:
    """Load the baseline and the variant to be applied, each alone for one long turn, in random order.

    In short turns, a stall caused by one server's writes hits all servers alike. Each turn ends with a
    checkpoint. Returns these turns, with the CPU shares of other processes.
    """
    design, servers, taken = observer.design, ServerClocks.of(arms), list[Slice]()
    writeback, split = WritebackThreads.of(_postmasters(arms)), observer.split
    names = [arm.variant.name for arm in arms]
    both = (0, names.index(applied_of(names)))
    for arm in (both[index] for index in trial_order(len(both), observer.random)):
        before = CpuReading.read(arms, split, writeback)
        own = turns.take([arm], slice_s=design.stretch_s, head_s=design.head_s, servers=servers)
        taken += [before.closing(one, CpuReading.read(arms, split, writeback)) for one in own]
        arms[arm].checkpoint()
    return tuple(taken)


def _postmasters(arms: Sequence[Arm]) -> list[int]:
    """Return the PIDs of the postmasters on this host."""
    return [pid for arm in arms for pid in arm.server_pids()[:1]]


def checkpoint_debt(observer: Observer, arm: Arm) -> Readings:
    """Run a checkpoint and return its cost, by meter."""
    before, clock = read_meters(observer.meters, arm), arm.cpu_clock()
    before_ns = clock.read_ns()
    arm.checkpoint()
    cpu_us = (clock.read_ns() - before_ns) / 1000
    debt = difference(before, read_meters(observer.meters, arm))
    # The load's backends exit at this moment. Their CPU time reaches the CPU meter only when they are reaped,
    # so the meter would charge it to the checkpoint. The clock counts live processes only.
    owed = {m: d for m, d in debt.items() if m not in _OF_BLOCKS_ALONE and not METRICS[m].is_level}
    return {**owed, SERVER_CPU: (cpu_us,)}
