"""Attributes transactions and CPU time to the arms of a time-sliced duet.

    slice        [start, end)          one arm's generator runs, all others are frozen
    head         [start, start + h)    discarded: cold caches, and transactions that straddled a freeze
    charge       CPU time that a *frozen* arm's server used (checkpointer, WAL writer, autovacuum, the rest
                 of statements in flight). The running arm could not use it, so it is taken off the running
                 arm's time and added to the time of the arm that caused it.

Latencies are on the arm's own running clock: time during which its generator was frozen is not counted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pgdyno.experiments.transactions import Transactions
from pgdyno.model.experiment import Slice


@dataclass(frozen=True)
class ArmCount:
    """What one arm achieved in one block, within the counted part of its slices.

    Shapes: latency_us (transactions,). Units: seconds; microseconds on the running clock.
    """

    transactions: int
    running_s: float
    latency_us: NDArray[np.int64]
    work: float  # transactions, or of those that were only partly within, the part that was

    def by_execution(self, executions: int) -> ArmCount:
        """Return what was counted by execution where each transaction has so many of them.

        How long one of several took nobody has measured: there are no latencies.
        """
        if executions == 1:
            return self
        none = np.empty(0, dtype=np.int64)
        return ArmCount(self.transactions * executions, self.running_s, none, self.work * executions)


def count_arm(  # noqa: PLR0913 — what was taken down, and how the load behaves
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

    If slices are drained (transactions under way at a slice's end still complete), latencies are those of
    the transactions that *began* in a counted part: whichever are under way at its end are the slow ones, and
    leaving them out would cut the tail off.

    Long transactions, of which a slice has few, count by the part of their time that lies in the counted
    part: whole ones alone would leave up to one of each client out.
    """
    own = sorted((s.start_ns, s.end_ns, i not in left_out) for i, s in enumerate(slices) if s.arm == arm)
    turns = np.array([(start, end) for start, end, _ in own], dtype=np.int64).reshape(-1, 2)
    starts, ends = turns[np.array([is_in for _, _, is_in in own], dtype=np.bool)].T
    begins = np.minimum(starts + head_ns, ends)
    which = np.searchsorted(begins, transactions.completed_ns, side="right") - 1
    is_counted = (which >= 0) & (transactions.completed_ns < ends[np.maximum(which, 0)])
    if is_drained:
        latency_us = _latency_us_by_beginning(transactions, begins, ends)
    else:
        latency_us = _running_latency_us(
            transactions.completed_ns[is_counted], transactions.latency_us[is_counted], *turns.T
        )
    completed = int(is_counted.sum())
    work = _parts_within(transactions, begins, ends) if is_long else float(completed)
    return ArmCount(completed, float((ends - begins).sum()) / 1e9, latency_us, work)


def completed_in_all(
    slices: Sequence[Slice], arm: int, transactions: Transactions, *, is_drained: bool
) -> int:
    """Return how many transactions the arm's whole slices brought about, heads and drains included.

    It is what meters that are read around a block have seen.
    """
    counted = count_arm(slices, arm, transactions, 0, is_drained=is_drained)
    return counted.latency_us.size if is_drained else counted.transactions


def charged_running_s(running_s: float, *, foreign_cpu_s: float, own_frozen_cpu_s: float, cpus: int) -> float:
    """Return an arm's running time after charging background CPU to whoever caused it.

    Args:
        running_s: the arm's own counted time.
        foreign_cpu_s: CPU that frozen arms' servers used during this arm's counted time.
        own_frozen_cpu_s: CPU that this arm's server used while this arm was frozen.
        cpus: CPUs that the servers share; one busy second costs 1/cpus of their capacity.
    """
    return running_s + (own_frozen_cpu_s - foreign_cpu_s) / cpus


def _latency_us_by_beginning(
    transactions: Transactions, begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the latencies of transactions that began within the counted parts; none straddles a slice."""
    began_ns = transactions.completed_ns - transactions.latency_us * 1000
    which = np.searchsorted(begins, began_ns, side="right") - 1
    is_counted = (which >= 0) & (began_ns < ends[np.maximum(which, 0)])
    return transactions.latency_us[is_counted]


def _parts_within(transactions: Transactions, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> float:
    """Return the sum over transactions of the share of their time within the counted parts."""
    duration_ns = np.maximum(transactions.latency_us * 1000, 1)
    began_ns = transactions.completed_ns - duration_ns
    within_ns = sum(
        np.clip(np.minimum(transactions.completed_ns, end) - np.maximum(began_ns, begin), 0, None)
        for begin, end in zip(begins, ends, strict=True)
    )
    return float(np.sum(within_ns / duration_ns))


def _running_latency_us(
    completed_ns: NDArray[np.int64],
    latency_us: NDArray[np.int64],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Take frozen time out of latencies: the difference of the arm's running clock at both ends.

    Transactions that began before the block's first slice have an unknown history and are left out.
    """
    if not starts.size:
        return np.empty(0, dtype=np.int64)
    began_ns = completed_ns - latency_us * 1000
    is_inside = began_ns >= starts[0]
    finished = _running_clock_ns(completed_ns[is_inside], starts, ends)
    began = _running_clock_ns(began_ns[is_inside], starts, ends)
    return (finished - began) // 1000


def _running_clock_ns(
    at_ns: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how long the arm had been running, in total, at each instant."""
    before = np.concatenate(([0], np.cumsum(ends - starts)))
    which = np.maximum(np.searchsorted(starts, at_ns, side="right") - 1, 0)
    inside = np.clip(at_ns - starts[which], 0, ends[which] - starts[which])
    return np.asarray(before[which] + inside, dtype=np.int64)
