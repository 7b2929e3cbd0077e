"""Attributes transactions and CPU time to the arms of a time-sliced duet.

    slice        [start, end)          one arm's generator runs, all others are frozen
    head         [start, start + h)    discarded: cold caches, and transactions that straddled a freeze
    charge       CPU time that a *frozen* arm's server used (checkpointer, WAL writer, autovacuum, the rest
                 of statements in flight). The running arm could not use it, so it is subtracted from the
                 running arm's time and added to the time of the arm that caused it.

Latencies are on the arm's running clock, which excludes time during which its generator was frozen.

The mean of the slowest transactions.

A percentile jumps when the share of stalled transactions crosses it: the 99th percentile is 12 ms with 0.9 %
stalls and 50 ms with 1.1 %. The mean beyond a percentile grows linearly with their number. It is the
conditional value-at-risk (CVaR, or expected shortfall): Rockafellar and Uryasev, "Optimization of conditional
value-at-risk", Journal of Risk 2 (2000), 21-41.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pgdyno.measure.blocks.transactions import Transactions
from pgdyno.model.experiments.failures import Failures
from pgdyno.model.experiments.slices import Slice


@dataclass(frozen=True)
class ArmCount:
    """One arm's results in the counted parts of its slices in one block.

    Shapes: latency_us (transactions,). Units: seconds; microseconds on the running clock.
    """

    transactions: int
    running_s: float
    latency_us: NDArray[np.int64]
    work: float  # transactions; those only partly inside count as that fraction
    failures: tuple[Failures, ...] = ()

    def by_execution(self, executions: int) -> ArmCount:
        """Return the counts per execution, for transactions of several executions each.

        Latencies are then empty: the duration of a single execution was not measured.
        """
        if executions == 1:
            return self
        none = np.empty(0, dtype=np.int64)
        failures = tuple(replace(one, count=one.count * executions) for one in self.failures)
        done = self.transactions * executions
        return ArmCount(done, self.running_s, none, self.work * executions, failures)


@dataclass(frozen=True)
class CountedParts:
    """The counted parts of one arm's slices, in order: without heads and left-out slices.

    Shapes: starts, begins, ends (slices,), ns; is_in (slices,). A slice's part is [begin, end).
    """

    starts: NDArray[np.int64]
    begins: NDArray[np.int64]
    ends: NDArray[np.int64]
    is_in: NDArray[np.bool_]

    @classmethod
    def of(
        cls, slices: Sequence[Slice], arm: int, head_ns: int, left_out: Collection[int] = ()
    ) -> CountedParts:
        """Return the parts of an arm's slices, by start time; ``left_out`` are positions in ``slices``."""
        own = sorted((s.start_ns, s.end_ns, i not in left_out) for i, s in enumerate(slices) if s.arm == arm)
        starts = np.array([start for start, _, _ in own], dtype=np.int64)
        ends = np.array([end for _, end, _ in own], dtype=np.int64)
        is_in = np.array([is_in for _, _, is_in in own], dtype=np.bool_)
        return cls(starts, np.minimum(starts + head_ns, ends), ends, is_in)

    def which(self, at_ns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the index of the counted part that contains each instant; -1 for none."""
        if not self.begins.size:
            return np.full(at_ns.shape, -1, dtype=np.int64)
        found = np.searchsorted(self.begins, at_ns, side="right") - 1
        of = np.maximum(found, 0)
        return np.where((found >= 0) & (at_ns < self.ends[of]) & self.is_in[of], found, -1)


def count_arm(  # noqa: PLR0913 — records, and properties of the load
    slices: Sequence[Slice],
    arm: int,
    transactions: Transactions,
    head_ns: int,
    *,
    is_drained: bool = False,
    is_long: bool = False,
    left_out: Collection[int] = (),
) -> ArmCount:
    """Count the transactions of ``arm`` that completed inside its slices, after their heads.

    ``left_out`` are the positions of slices that do not count.

    If slices are drained (transactions in progress at a slice's end still complete), latencies are those of
    the transactions that *began* in a counted part. Transactions in progress at its end are mostly slow ones;
    without them the tail would be truncated.

    Long transactions, with few per slice, count by the fraction of their time inside the counted part.
    Counting whole ones only would miss up to one per client.
    """
    counted = CountedParts.of(slices, arm, head_ns, left_out)
    is_counted = counted.which(transactions.completed_ns) >= 0
    latency_us, _ = latencies_us(counted, transactions, is_drained=is_drained)
    completed = int(is_counted.sum())
    begins, ends = counted.begins[counted.is_in], counted.ends[counted.is_in]
    work = _parts_within(transactions, begins, ends) if is_long else float(completed)
    failures = tuple(
        Failures(sqlstate, count, statement)
        for (sqlstate, statement), at_ns in transactions.failed_ns.items()
        if (count := int((counted.which(at_ns) >= 0).sum()))
    )
    return ArmCount(completed, float((ends - begins).sum()) / 1e9, latency_us, work, failures)


def completed_in_all(
    slices: Sequence[Slice], arm: int, transactions: Transactions, *, is_drained: bool
) -> int:
    """Return the number of transactions in the arm's whole slices, including heads and drains.

    Meters read before and after a block cover the same transactions.
    """
    counted = count_arm(slices, arm, transactions, 0, is_drained=is_drained)
    return counted.latency_us.size if is_drained else counted.transactions


def latencies_us(
    counted: CountedParts, transactions: Transactions, *, is_drained: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the counted latencies, in µs, and the index of each one's counted part.

    Drained slices: transactions that began in a counted part; none straddles a slice. Frozen slices:
    transactions that ended in a counted part, on the arm's running clock. Those that began before the first
    slice have an unknown history and are left out.
    """
    began_ns = transactions.completed_ns - transactions.latency_us * 1000
    if is_drained:
        which = counted.which(began_ns)
        return transactions.latency_us[which >= 0], which[which >= 0]
    which = counted.which(transactions.completed_ns)
    is_counted = which >= 0
    is_counted[is_counted] = began_ns[is_counted] >= counted.starts[0] if counted.starts.size else False
    finished = _running_clock_ns(transactions.completed_ns[is_counted], counted.starts, counted.ends)
    began = _running_clock_ns(began_ns[is_counted], counted.starts, counted.ends)
    return (finished - began) // 1000, which[is_counted]


def charged_running_s(running_s: float, *, foreign_cpu_s: float, own_frozen_cpu_s: float, cpus: int) -> float:
    """Return an arm's running time after charging background CPU time to the arm that caused it.

    Args:
        running_s: the arm's own counted time.
        foreign_cpu_s: CPU time of frozen arms' servers during this arm's counted time.
        own_frozen_cpu_s: CPU time of this arm's server while this arm was frozen.
        cpus: CPUs that the servers share; one busy second takes 1/cpus of their capacity.
    """
    return running_s + (own_frozen_cpu_s - foreign_cpu_s) / cpus


def _parts_within(transactions: Transactions, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> float:
    """Return the sum over transactions of the fraction of their time inside the counted parts."""
    duration_ns = np.maximum(transactions.latency_us * 1000, 1)
    began_ns = transactions.completed_ns - duration_ns
    within_ns = sum(
        np.clip(np.minimum(transactions.completed_ns, end) - np.maximum(began_ns, begin), 0, None)
        for begin, end in zip(begins, ends, strict=True)
    )
    return float(np.sum(within_ns / duration_ns))


def _running_clock_ns(
    at_ns: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the arm's total running time up to each instant."""
    if not at_ns.size:
        return at_ns
    before = np.concatenate(([0], np.cumsum(ends - starts)))
    which = np.maximum(np.searchsorted(starts, at_ns, side="right") - 1, 0)
    inside = np.clip(at_ns - starts[which], 0, ends[which] - starts[which])
    return np.asarray(before[which] + inside, dtype=np.int64)


_ONE_IN = 20  # the slowest 5 %


def tail_mean(latencies: NDArray[np.int64]) -> float:
    """Return the mean of the slowest 5 %, in the unit of ``latencies``; at least one is required.

    The tail of n transactions has n / 20. If that is no integer, the fastest one of the tail counts as the
    remaining fraction: of 50, the two slowest count fully and the third by half. So the mean does not jump
    from one n to the next. Of fewer than 20, it is the slowest one.

    Shapes: latencies (transactions,).
    """
    whole, rest = divmod(latencies.size, _ONE_IN)
    slowest = np.sort(latencies)[::-1]
    total = float(slowest[:whole].sum()) + (rest / _ONE_IN * float(slowest[whole]) if rest else 0.0)
    return total * _ONE_IN / latencies.size
