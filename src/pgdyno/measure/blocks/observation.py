"""Convert a round's observations into the results of its blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from pgdyno.base.errors import MeasurementError
from pgdyno.host.host import HostCpu
from pgdyno.measure.blocks.attribution import (
    CountedParts,
    completed_in_all,
    count_arm,
    latencies_us,
    tail_mean,
)
from pgdyno.measure.blocks.blocks import (
    arm_block,
    audit_block,
    audit_drains,
    charge,
    checkpoint_asymmetry,
    created_segments,
    huge_page_asymmetry,
    missing_checkpoint,
    missing_workers,
    void_reason,
)
from pgdyno.measure.blocks.disturbance import audit_apart, audit_windows, left_out, raised, too_far_apart
from pgdyno.measure.blocks.histogram import Histogram, encode
from pgdyno.measure.blocks.transactions import Transactions
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.model.experiments.experiment import ArmBlock, Block, Design
from pgdyno.model.experiments.failures import failures_text
from pgdyno.model.experiments.metric import CLIENT_CPU, SERVER_CPU, TAIL_MEAN_ALONE, Readings
from pgdyno.model.experiments.slices import Slice
from pgdyno.model.experiments.statements import StatementCount
from pgdyno.model.plans.plan import HUGE_PAGES, kind_of
from pgdyno.model.variants.variant import Variant

_CHECKPOINT_SETTINGS = (
    "max_wal_size",
    "checkpoint_timeout",
    "checkpoint_completion_target",
    "wal_compression",
    "full_page_writes",
    "shared_buffers",
)
MetricsOf: TypeAlias = Callable[[Readings, int], Mapping[str, float]]
"""Converts a block's meter increments and its number of transactions to metrics, by name."""


def no_metrics(_increments: Readings, _transactions: int) -> Mapping[str, float]:
    """Return no metrics, where no meter was read."""
    return {}


@dataclass(frozen=True)
class ObservedBlock:
    """One block's raw observations. ``deltas`` are each arm's meter increments; empty if not read.

    ``host`` has readings at the block's start and end; None if not read. ``left_out`` are the positions of
    slices that do not count. ``statements`` are each arm's, by name, also of those; empty: not counted.
    ``rested_s``: the load rested for so long while the counts were read. ``has_evicted``: some are lost.
    """

    started_ns: int
    slices: tuple[Slice, ...]
    deltas: tuple[Readings, ...]
    host: tuple[HostCpu, HostCpu] | None
    own_cpu_s: float
    left_out: frozenset[int] = frozenset()
    statements: tuple[Mapping[str, StatementCount], ...] = ()
    rested_s: float = 0.0
    has_evicted: bool = False

    @property
    def counted(self) -> list[Slice]:
        """The slices that count."""
        return [one for position, one in enumerate(self.slices) if position not in self.left_out]


@dataclass(frozen=True)
class ObservedArm:
    """One arm over all blocks of a workload in a round. ``debt`` is its final checkpoint's cost, by meter."""

    variant: Variant
    transactions: Transactions
    debt: Readings


@dataclass(frozen=True)
class ObservedRun:
    """One workload in one round."""

    workload: str
    round: int
    arms: Sequence[ObservedArm]
    blocks: Sequence[ObservedBlock]
    is_drained: bool = False  # True: transactions end before the next turn; False: they are frozen
    is_long: bool = False  # whether a block has few transactions
    workers: int | None = None  # required in every transaction
    executions: int = 1  # per transaction; counts and meters are per execution
    is_whole_cycle: bool = False  # whether every block must span a checkpoint of every arm
    stretches: Sequence[Slice] = ()  # after the last block: turns with load on one arm alone
    metrics_of: MetricsOf = no_metrics


def build_blocks(run: ObservedRun, design: Design, split: CpuSplit) -> list[Block]:
    """Attribute transactions to slices, spread checkpoint debts over blocks, and judge every block.

    Raises: MeasurementError if an arm completed nothing in a block.
    """
    is_comparable = len({_checkpoint_settings(arm.variant) for arm in run.arms}) == 1
    is_sharing = _share_a_pool([arm.variant for arm in run.arms])
    shares = [_debt_shares(run, position) for position in range(len(run.arms))]
    disturbed = left_out([block.slices for block in run.blocks], design.thresholds)
    results = []
    for index, (observed, by_others) in enumerate(zip(run.blocks, disturbed, strict=True)):
        out = by_others | too_far_apart(observed.slices, design.thresholds)
        block = replace(observed, left_out=out)
        arms = tuple(
            _arm_block(run, block, position, shares[position][index], design, split)
            for position in range(len(run.arms))
        )
        seen = {**audit_drains(block.counted), **created_segments(arms), **audit_apart(block.slices)}
        audit = {**_audit(block, design, split), **audit_windows(block.slices, by_others), **seen}
        void = (
            checkpoint_asymmetry(arms, is_comparable=is_comparable)
            or huge_page_asymmetry(arms, is_comparable=is_sharing)
            or missing_workers(arms, run.workers)
            or missing_checkpoint(arms, is_wanted=run.is_whole_cycle)
            or void_reason(audit, design.thresholds)  # last: it is judged again later
        )
        if index == len(run.blocks) - 1:
            arms = _with_stretches(run, arms, design)
        results.append(
            Block(run.workload, run.round, index, block.started_ns, arms, void, audit, tuple(sorted(out)))
        )
    return results


def _with_stretches(run: ObservedRun, arms: tuple[ArmBlock, ...], design: Design) -> tuple[ArmBlock, ...]:
    """Return the arms with the tail mean of their stretches, in which each alone had load.

    No arm gets one if any stretch was disturbed more than blocks usually are: the stretches are compared.
    """
    if not run.stretches:
        return arms
    blocks = (audit_windows(block.slices, frozenset()) for block in run.blocks)
    limits = raised(design.thresholds, blocks)
    if any(void_reason(audit_windows([one], frozenset()), limits) for one in run.stretches):
        return arms
    found = []
    for position, arm in enumerate(arms):
        parts = CountedParts.of(run.stretches, position, int(design.head_s * 1e9))
        of_arm, _ = latencies_us(parts, run.arms[position].transactions, is_drained=run.is_drained)
        alone = {TAIL_MEAN_ALONE: tail_mean(of_arm) / 1000} if of_arm.size else {}
        found.append(replace(arm, values={**arm.values, **alone}))
    return tuple(found)


def counted_slices(run: ObservedRun, block: ObservedBlock, design: Design) -> list[Slice]:
    """Return the block's slices with their counts; empty if executions are counted instead."""
    if run.executions > 1:
        return []
    head_ns = int(design.head_s * 1e9)
    return [
        one
        for position, arm in enumerate(run.arms)
        for one in count_slices(block.slices, position, arm.transactions, head_ns, is_drained=run.is_drained)
    ]


def _arm_block(
    run: ObservedRun, block: ObservedBlock, position: int, debt_share: float, design: Design, split: CpuSplit
) -> ArmBlock:
    """Return one arm's results in a block, after charging background work to the arm that caused it."""
    arm = run.arms[position]
    completed, counted = (
        completed_in_all(slices, position, arm.transactions, is_drained=run.is_drained)
        for slices in (block.slices, block.counted)
    )
    if counted == 0:
        failed = failures_text(arm.transactions.failures)
        raise MeasurementError(
            f"{arm.variant.name} completed no transaction in a block",
            detail=f"failed in the round: {failed}"
            if failed
            else "leaving the block out would hide the worst behaviour of this variant",
            hint="use longer blocks (--block), or look for the cause in the server's log",
        )
    count = count_arm(
        block.slices,
        position,
        arm.transactions,
        int(design.head_s * 1e9),
        is_drained=run.is_drained,
        is_long=run.is_long,
        left_out=block.left_out,
    )
    debt_cpu_s = debt_share * counted / completed * sum(arm.debt.get(SERVER_CPU, ())) / 1e6
    charged = charge(
        count.by_execution(run.executions), block.counted, position, debt_cpu_s, len(split.server)
    )
    deltas = _with_debt(block.deltas[position], arm.debt, debt_share) if block.deltas else {}
    meters = run.metrics_of(deltas, completed * run.executions)
    found = arm_block(arm.variant.name, charged, block.counted, position, meters)
    return replace(found, statements=block.statements[position]) if block.statements else found


def _with_debt(delta: Readings, debt: Readings, share: float) -> Mapping[str, tuple[float, ...]]:
    """Add this block's share of the cost of the round's closing checkpoint."""
    return {
        metric: tuple(d + share * owed for d, owed in zip(values, debt[metric], strict=True))
        if metric in debt
        else values
        for metric, values in delta.items()
    }


def _debt_shares(run: ObservedRun, position: int) -> list[float]:
    """Split a round's debt over its blocks by transactions completed; the warm-up's part is not charged.

    With stretches, the debt covers the transactions before them.
    """
    done = run.arms[position].transactions
    counts = [
        completed_in_all(block.slices, position, done, is_drained=run.is_drained) for block in run.blocks
    ]
    until_ns = min((one.start_ns for one in run.stretches), default=None)
    everything = done.count if until_ns is None else int((done.completed_ns < until_ns).sum())
    return [count / max(1, everything) for count in counts]


def _audit(block: ObservedBlock, design: Design, split: CpuSplit) -> dict[str, float]:
    if block.host is None:
        return {}
    before, after = block.host
    server_us = sum(sum(delta.get(SERVER_CPU, ())) for delta in block.deltas)
    read_us = [delta[CLIENT_CPU] for delta in block.deltas if CLIENT_CPU in delta]
    client_us = [sum(of_host) for of_host in zip(*read_us, strict=True)]
    here_us = server_us + (0.0 if split.load_host_threads else sum(client_us))
    ours_s = here_us / 1e6 + block.own_cpu_s
    client_s = [used / 1e6 for used in client_us]
    audit = audit_block(block.slices, design.slice_s, block.host, split, ours_s=ours_s, client_s=client_s)
    if block.slices[0].drained_ns is not None:  # a driver's rest is no delay of its own
        audit["schedule_lag_share"] -= block.rested_s / (len(block.slices) * design.slice_s)
    return {**audit, "own_cpu_share": block.own_cpu_s / (after.at_s - before.at_s)}


def _checkpoint_settings(variant: Variant) -> tuple[str | None, ...]:
    return tuple(variant.settings.get(name) for name in _CHECKPOINT_SETTINGS)


def _share_a_pool(variants: Sequence[Variant]) -> bool:
    """Whether the variants have equal settings and request huge pages."""
    first = variants[0].settings
    return all(variant.settings == first for variant in variants) and any(
        kind_of(path) == HUGE_PAGES for path in variants[0].files
    )


def count_slices(
    slices: Sequence[Slice], arm: int, transactions: Transactions, head_ns: int, *, is_drained: bool
) -> list[Slice]:
    """Return the arm's slices, in order, each with its counts.

    The counts are those of ``attribution.count_arm``.
    """
    own = sorted((one for one in slices if one.arm == arm), key=lambda one: one.start_ns)
    counted = CountedParts.of(slices, arm, head_ns)
    which = counted.which(transactions.completed_ns)
    completed = np.bincount(which[which >= 0], minlength=len(own)).tolist()
    latency_us, of_slice = latencies_us(counted, transactions, is_drained=is_drained)
    return [
        replace(
            one,
            completed=completed[index],
            latencies=encode(Histogram.of(latency_us[of_slice == index])),
        )
        for index, one in enumerate(own)
    ]
