"""Runs one round: servers started afresh, every workload in blocks of slices, results at its end.

    open arms → per workload: start loads, warm up, freeze
                              per block: read meters → slices → read meters
                              stop loads (completes their logs), CHECKPOINT every arm (its debt)
              → attribute transactions to slices, build blocks

Logs are parsed after the generators have ended, never beside a running slice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from numpy.random import Generator as Random

from pgdyno.app.arena import Arena
from pgdyno.app.arm import Arm, Readings, difference, read_meters
from pgdyno.experiments.attribution import ArmCount, count_arm
from pgdyno.experiments.blocks import (
    ArmObservation,
    BlockPlace,
    HostUse,
    audit_block,
    build_block,
    checkpoint_asymmetry,
    void_reason,
)
from pgdyno.experiments.schedule import seats, slice_order, trial_order
from pgdyno.experiments.transactions import Transactions, parse
from pgdyno.generators.duet import run_slices
from pgdyno.meters import MeterModule
from pgdyno.model.experiment import Block, Design, DesignKind, ResetPolicy, Slice
from pgdyno.model.variant import Variant
from pgdyno.model.workload import Workload
from pgdyno.server.processes import CpuClock, HostCpu, read_host_cpu

_CHECKPOINT_SETTINGS = (
    "max_wal_size",
    "checkpoint_timeout",
    "checkpoint_completion_target",
    "wal_compression",
    "full_page_writes",
    "shared_buffers",
)

KeepSlice = Callable[[str, int, int, Slice], None]
"""Stores a slice as soon as it has ended: workload, round, block, slice."""


@dataclass(frozen=True)
class Running:
    """What a round needs to know about its experiment."""

    arena: Arena
    variants: Sequence[Variant]
    design: Design
    meters: Sequence[MeterModule]
    random: Random
    keep_slice: KeepSlice


@dataclass(frozen=True)
class _Observed:
    """One block's raw observations, before the logs are read."""

    started_ns: int
    wall_s: float
    slices: tuple[Slice, ...]
    deltas: tuple[Readings, ...]
    host: tuple[HostCpu, HostCpu]
    own_cpu_s: float


def run_round(running: Running, round_index: int, workloads: Sequence[Workload]) -> list[Block]:
    """Run every block of one round over ``workloads``, which share one data set."""
    data_set = workloads[0].data_set
    arena, count = running.arena, len(running.variants)
    needs_restore = any(w.reset is ResetPolicy.RESTORE for w in workloads)
    if needs_restore or not arena.has_seats(data_set, count):
        arena.restore(data_set, count)
    if running.design.kind is DesignKind.ALTERNATING:
        return _alternating_round(running, round_index, workloads)
    blocks: list[Block] = []
    with arena.arms(running.variants, seats(count, round_index), data_set) as arms:
        for workload in workloads:
            blocks += _measure(running, round_index, workload, arms, tuple(range(count)))
    return blocks


def _alternating_round(running: Running, round_index: int, workloads: Sequence[Workload]) -> list[Block]:
    """Run whole trials one after another, each on its own freshly started server, in random order."""
    count = len(running.variants)
    by_workload: dict[str, list[tuple[int, list[Block]]]] = {w.name: [] for w in workloads}
    for arm in trial_order(count, running.random):
        alone = replace(running, variants=[running.variants[arm]])
        with running.arena.arms(alone.variants, [arm], workloads[0].data_set) as arms:
            for workload in workloads:
                by_workload[workload.name].append((arm, _measure(alone, round_index, workload, arms, (arm,))))
    return [block for trials in by_workload.values() for block in _joined(trials)]


def _joined(trials: list[tuple[int, list[Block]]]) -> list[Block]:
    """Make one block of the trials of all arms that share an index; void if any of them is."""
    ordered = [blocks for _, blocks in sorted(trials, key=lambda trial: trial[0])]
    return [
        replace(
            parts[0],
            arms=tuple(part.arms[0] for part in parts),
            void=next((part.void for part in parts if part.void), None),
        )
        for parts in zip(*ordered, strict=True)
    ]


def _measure(
    running: Running, round_index: int, workload: Workload, arms: Sequence[Arm], labels: Sequence[int]
) -> list[Block]:
    """Measure one workload on running arms: all its blocks of this round."""
    design = running.design
    duration_s = len(arms) * design.warmup_s + design.blocks_per_round * (design.block_s * 1.5 + 10)
    with ExitStack() as stack:
        for arm, label in zip(arms, labels, strict=True):
            running.arena.start_load(arm, workload, design, duration_s=duration_s, label=str(label))
            assert arm.load is not None  # noqa: S101 — start_load sets it
            stack.callback(arm.load.stop)
            time.sleep(design.warmup_s)
            arm.load.freeze()
        observed = [
            _observe_block(running, workload, round_index, i, arms) for i in range(design.blocks_per_round)
        ]
        logs = [arm.load.transactions for arm in arms if arm.load is not None]
    transactions = [parse(log.read_new()) for log in logs]
    debts = [_checkpoint_debt(running, workload, arm) for arm in arms]
    return [
        _build(running, workload, round_index, index, block, arms, transactions, debts, observed)
        for index, block in enumerate(observed)
    ]


def _observe_block(
    running: Running, workload: Workload, round_index: int, index: int, arms: Sequence[Arm]
) -> _Observed:
    design = running.design
    loads = [arm.load for arm in arms if arm.load is not None]
    clocks = [CpuClock.of(arm.server_pids()) for arm in arms]
    count = max(len(arms), round(design.block_s / design.slice_s))
    order = slice_order(len(arms), count, running.random) if len(arms) > 1 else (0,) * count
    before = [read_meters(running.meters, arm) for arm in arms]
    own_cpu_s, host, started_ns = time.process_time(), read_host_cpu(), time.time_ns()
    slices = []
    try:
        for done in run_slices(
            loads,
            order,
            slice_s=design.slice_s,
            head_s=design.head_s,
            read_cpu=lambda: tuple(clock.read_ns() for clock in clocks),
        ):
            slices.append(done)
            running.keep_slice(workload.name, round_index, index, done)
    finally:
        for clock in clocks:
            clock.close()
    wall_s, host_after = (time.time_ns() - started_ns) / 1e9, read_host_cpu()
    own_cpu_s = time.process_time() - own_cpu_s
    after = [read_meters(running.meters, arm) for arm in arms]
    deltas = tuple(difference(b, a) for b, a in zip(before, after, strict=True))
    return _Observed(started_ns, wall_s, tuple(slices), deltas, (host, host_after), own_cpu_s)


def _checkpoint_debt(running: Running, workload: Workload, arm: Arm) -> Readings:
    """Write out what the blocks dirtied and return what that cost, by meter. Read-only work owes nothing."""
    if workload.is_read_only:
        return {}
    before = read_meters(running.meters, arm)
    arm.checkpoint()
    return difference(before, read_meters(running.meters, arm))


def _build(  # noqa: PLR0913 — everything that was observed meets here
    running: Running,
    workload: Workload,
    round_index: int,
    index: int,
    block: _Observed,
    arms: Sequence[Arm],
    transactions: Sequence[Transactions],
    debts: Sequence[Readings],
    observed: Sequence[_Observed],
) -> Block:
    observations = [
        _observation(running, arm, position, block, transactions[position], debts[position], observed)
        for position, arm in enumerate(arms)
    ]
    split = running.arena.split
    use = _host_use(running, block)
    audit = audit_block(block.slices, running.design.slice_s, use)
    void = void_reason(audit, running.design.thresholds) or checkpoint_asymmetry(
        observations, is_comparable=_have_equal_checkpoint_settings(arms)
    )
    place = BlockPlace(workload.name, round_index, index, block.started_ns)
    return build_block(
        place, block.slices, observations, server_cpus=len(split.server), audit=audit, void=void
    )


def _observation(  # noqa: PLR0913 — one arm's share of what _build brings together
    running: Running,
    arm: Arm,
    position: int,
    block: _Observed,
    transactions: Transactions,
    debt: Readings,
    observed: Sequence[_Observed],
) -> ArmObservation:
    head_ns = int(running.design.head_s * 1e9)
    completed = _completed(block, position, transactions)
    share = completed / max(1, sum(_completed(other, position, transactions) for other in observed))
    deltas = {
        metric: tuple(
            d + share * extra for d, extra in zip(delta, debt.get(metric, (0.0,) * len(delta)), strict=True)
        )
        for metric, delta in block.deltas[position].items()
    }
    values = {
        meter.METER.metric: meter.value(deltas[meter.METER.metric], max(1, completed))
        for meter in running.meters
        if meter.METER.metric in deltas
    }
    debt_cpu_s = share * sum(debt.get("server_cpu_us_per_transaction", ())) / 1e6
    count = count_arm(block.slices, position, transactions, head_ns)
    return ArmObservation(arm.variant.name, count, completed, values, debt_cpu_s)


def _completed(block: _Observed, position: int, transactions: Transactions) -> int:
    """Count an arm's transactions over its whole slices, heads included."""
    count: ArmCount = count_arm(block.slices, position, transactions, 0)
    return count.transactions


def _host_use(running: Running, block: _Observed) -> HostUse:
    before, after = block.host
    split = running.arena.split
    server_us = sum(sum(d.get("server_cpu_us_per_transaction", ())) for d in block.deltas)
    client_us = sum(sum(d.get("client_cpu_us_per_transaction", ())) for d in block.deltas)
    return HostUse(
        wall_s=block.wall_s,
        busy_s=after.busy_s - before.busy_s,
        steal_s=after.steal_s - before.steal_s,
        ours_s=(server_us + client_us) / 1e6 + block.own_cpu_s,
        client_s=client_us / 1e6,
        cpus=len(set(split.server) | set(split.client)),
        client_cpus=len(split.client) if split.is_isolated else None,
    )


def _have_equal_checkpoint_settings(arms: Sequence[Arm]) -> bool:
    settings = [tuple(arm.variant.settings.get(name) for name in _CHECKPOINT_SETTINGS) for arm in arms]
    return len(set(settings)) == 1
