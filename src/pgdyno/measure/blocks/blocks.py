"""Build a block's results from observations, and decide whether it counts.

Drains: time at the end of turns in which running transactions finish and none begins.

Drains do not count for throughput, so a stall during a drain is hidden. The drain share is reported per arm:
arms with different shares hide different amounts. It makes no block void: slow transactions lengthen drains,
and they are a result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from pgdyno.base import numbers
from pgdyno.host.host import HostCpu
from pgdyno.measure.blocks.attribution import ArmCount, charged_running_s, tail_mean
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.model.experiments.experiment import ArmBlock, Block, VoidThresholds
from pgdyno.model.experiments.metric import (
    DRAIN_SHARE,
    LAUNCHED_WORKERS,
    P50,
    P95,
    P99,
    TAIL_MEAN,
    THROUGHPUT,
    WAL_SEGMENTS,
)
from pgdyno.model.experiments.slices import Slice
from pgdyno.model.experiments.statements import trimmed

DIFFERENCE = "drain_share_difference"


def drain_share(slices: Sequence[Slice], arm: int) -> float | None:
    """Return the share of drains in an arm's turns, drains included; None if drains were not recorded."""
    own = [(one, one.drained_ns) for one in slices if one.arm == arm and one.drained_ns is not None]
    occupied_ns = sum(drained_ns - one.start_ns for one, drained_ns in own)
    if occupied_ns <= 0:
        return None
    return sum(drained_ns - one.end_ns for one, drained_ns in own) / occupied_ns


def audit_drains(slices: Sequence[Slice]) -> dict[str, float]:
    """Return the largest drain share of any arm and the range over the arms; empty if none was recorded."""
    found = [drain_share(slices, arm) for arm in sorted({one.arm for one in slices})]
    shares = [share for share in found if share is not None]
    if not shares:
        return {}
    apart = {DIFFERENCE: max(shares) - min(shares)} if len(shares) > 1 else {}
    return {DRAIN_SHARE: max(shares), **apart}


BY_OTHERS = {
    "steal_share": "of the CPU time was stolen by the hypervisor",
    "foreign_cpu_share": "of the CPU time went to other processes",
}
_RULES = {
    **BY_OTHERS,
    "schedule_lag_share": "longer than planned were the slices in all",
    "apart_share": "of a variant's turns may have begun too far apart on the load hosts",
    "client_saturation_share": "of the client's CPUs were busy: the client limited the result",
}
"""Why a block is void, in words, by threshold name. Void reasons are stored and recognised by these words."""

_ALIKE = 0.5  # arbitrary: a server gets all of its huge pages or none, but may not have touched all yet


def charge(
    count: ArmCount, slices: Sequence[Slice], arm: int, debt_cpu_s: float, server_cpus: int
) -> ArmCount:
    """Return an arm's count with background work charged to the arm that caused it.

    ``debt_cpu_s`` is the CPU time that the block's writes cost later: its share of the checkpoint at the
    round's end.
    """
    others_s = sum(sum(s.server_cpu_ns) - s.server_cpu_ns[arm] for s in slices if s.arm == arm) / 1e9
    running_s = charged_running_s(
        count.running_s,
        foreign_cpu_s=others_s,
        own_frozen_cpu_s=_frozen_s(slices, arm) + debt_cpu_s,
        cpus=server_cpus,
    )
    return replace(count, running_s=running_s)


def arm_block(
    variant: str, count: ArmCount, slices: Sequence[Slice], arm: int, meters: Mapping[str, float]
) -> ArmBlock:
    """Return one arm's block with all metrics. ``count`` is charged; ``meters`` are metrics by name."""
    own_s = sum(s.server_cpu_ns[arm] for s in slices if s.arm == arm) / 1e9
    frozen_s = _frozen_s(slices, arm)
    values = {THROUGHPUT: count.work / count.running_s, **meters, **_latencies(count)}
    if (share := drain_share(slices, arm)) is not None:
        values[DRAIN_SHARE] = share
    values["frozen_cpu_share"] = frozen_s / (own_s + frozen_s) if own_s + frozen_s > 0 else 0.0
    return ArmBlock(variant, count.transactions, count.running_s, values, failures=count.failures)


def _frozen_s(slices: Sequence[Slice], arm: int) -> float:
    """Return the CPU time that an arm's server used while the arm was frozen."""
    return sum(s.server_cpu_ns[arm] for s in slices if s.arm != arm) / 1e9


def join_trials(trials: Sequence[Block]) -> Block:
    """Return one block made of the arms' separate trials, the baseline's first.

    A disturbed trial does not count. The block does not count without its baseline's trial or any other.
    """
    arms = tuple(replace(trial.arms[0], void=trial.void, audit=trial.audit) for trial in trials)
    return replace(trials[0], arms=arms, void=trials_void(arms))


def with_trimmed_statements(block: Block) -> Block:
    """Return a block in which all arms count the same statements: those that take some time in any arm."""
    counts = trimmed([arm.statements for arm in block.arms])
    arms = (replace(arm, statements=its) for arm, its in zip(block.arms, counts, strict=True))
    return replace(block, arms=tuple(arms))


def trials_void(arms: Sequence[ArmBlock]) -> str | None:
    """Return why a block of trials is void: the baseline (first) is, or all others are. None if it counts."""
    baseline, *others = arms
    is_void = baseline.void or (others and all(arm.void for arm in others))
    return next(arm.void for arm in arms if arm.void) if is_void else None


def audit_block(
    slices: Sequence[Slice],
    slice_s: float,
    host: tuple[HostCpu, HostCpu],
    split: CpuSplit,
    *,
    ours_s: float,
    client_s: Sequence[float],
) -> dict[str, float]:
    """Return the quantities that the void rules test; none is a measured result.

    ``ours_s`` is the CPU time of servers, load and pgdyno on this host between the two readings of ``host``.
    ``client_s`` is the load's CPU time on each host that issues it.
    """
    before, after = host
    wall_s = after.at_s - before.at_s
    capacity_s = wall_s * len({*split.server, *split.client})
    lasted_s = sum(s.end_ns - s.start_ns for s in slices) / 1e9
    audit = {
        "steal_share": (after.steal_s - before.steal_s) / capacity_s,
        "foreign_cpu_share": max(0.0, after.busy_s - before.busy_s - ours_s) / capacity_s,
        "schedule_lag_share": (lasted_s + _between_s(slices)) / (len(slices) * slice_s) - 1,
    }
    if split.is_isolated:
        audit["client_saturation_share"] = split.saturation(client_s, wall_s)
    return audit


def _between_s(slices: Sequence[Slice]) -> float:
    """Return the idle time between the turns of a driver: the driver's own delay."""
    return sum(
        max(0, after.start_ns - before.drained_ns) / 1e9
        for before, after in pairwise(slices)
        if before.drained_ns is not None
    )


def void_reason(audit: Mapping[str, float], thresholds: VoidThresholds) -> str | None:
    """Return why a block does not count, or None if it does."""
    for name, words in _RULES.items():
        limit = getattr(thresholds, name)
        if audit.get(name, 0.0) > limit:
            return f"{numbers.share(audit[name], 1)} {words} (limit {numbers.share(limit, 0)})"
    return None


def is_from_audit(void: str) -> bool:
    """Return whether a void reason comes from the block's audit, and so can be judged again."""
    return any(words in void for words in _RULES.values())


def checkpoint_asymmetry(arms: Sequence[ArmBlock], *, is_comparable: bool) -> str | None:
    """Return a void reason if arms with equal checkpoint settings saw different numbers of checkpoints."""
    counts = {o.variant: o.values["checkpoints"] for o in arms if "checkpoints" in o.values}
    if is_comparable and len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count:.0f}" for name, count in counts.items())
        return f"checkpoints differ between arms with equal checkpoint settings ({listed})"
    return None


def huge_page_asymmetry(arms: Sequence[ArmBlock], *, is_comparable: bool) -> str | None:
    """Return a void reason if only some of the arms with equal settings and a shared pool got huge pages.

    Another server started on the machine between two of ours may take pages from the pool.
    """
    sizes = {o.variant: o.values["huge_page_bytes"] for o in arms if "huge_page_bytes" in o.values}
    if is_comparable and sizes and min(sizes.values()) < _ALIKE * max(sizes.values()):
        listed = ", ".join(f"{name} {numbers.size(size)}" for name, size in sizes.items())
        return f"memory on huge pages differs between arms with equal settings ({listed})"
    return None


def created_segments(arms: Sequence[ArmBlock]) -> dict[str, float]:
    """Return the number of WAL segments that all servers together created in a block; empty if none."""
    count = sum(arm.values.get(WAL_SEGMENTS, 0.0) for arm in arms)
    return {WAL_SEGMENTS: count} if count else {}


def missing_workers(arms: Sequence[ArmBlock], workers: int | None) -> str | None:
    """Return a void reason if not all of the required parallel workers were launched."""
    for arm in arms if workers else ():
        share = arm.values.get(LAUNCHED_WORKERS, 1.0)
        if share < 1:
            return f"only {numbers.share(share, 0)} of the parallel workers of {arm.variant} were launched"
    return None


def missing_checkpoint(arms: Sequence[ArmBlock], *, is_wanted: bool) -> str | None:
    """Return a void reason if a block must span a checkpoint of every arm, and one arm had none."""
    for arm in arms if is_wanted else ():
        if arm.values.get("checkpoints", 0.0) < 1:
            return f"no checkpoint of {arm.variant} began in it"
    return None


def _latencies(count: ArmCount) -> dict[str, float]:
    """Return percentiles and the tail mean, in ms; empty if nothing completed."""
    if count.latency_us.size == 0:
        return {}
    percentiles = np.percentile(count.latency_us, [50, 95, 99]) / 1000
    names = (P50, P95, P99)
    by_name = dict(zip(names, map(float, percentiles), strict=True))
    return {**by_name, TAIL_MEAN: tail_mean(count.latency_us) / 1000}
