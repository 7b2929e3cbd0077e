"""A turn of one arm, and the log of its load."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class HostLog:
    """An arm's transactions with timestamps of a host's clock, one per line.

    ``moves`` convert these to the server's clock: pairs of a start time by the host's clock, and the ns to
    add from then on. Empty: nothing is added.
    """

    text: bytes
    moves: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Slice:
    """One turn of one arm. ``arm`` indexes the experiment's variants; times are wall-clock ns.

    With load from other hosts, ``start_ns`` is the earliest time, by the server's clock, at which they could
    begin. ``server_cpu_ns`` is the CPU time that each arm's server, active or idle, used in the counted part
    of this slice; with load from another host it is prorated by time, from the CPU time used between the
    start of the turn and the return of all servers to rest. ``drained_ns`` is when the last transaction in
    progress at the end of the turn ended; None if the generator was frozen instead, or if not recorded.
    ``steal_share`` and ``foreign_cpu_share`` are the shares of CPU time taken by the hypervisor and by other
    processes since the last slice that has them; None within such a window. ``apart_ns`` is the largest
    difference between the starts of several load hosts; None with a single load source.

    Set once the round's logs have been read: ``completed`` is the number of transactions that ended in the
    counted part, ``latencies`` the histogram in us of the transactions behind the block's latencies, as text
    of ``measure/blocks/histogram.py``. None: not recorded, or the workload counts executions.
    """

    arm: int
    start_ns: int
    end_ns: int
    server_cpu_ns: tuple[int, ...]
    drained_ns: int | None = None
    steal_share: float | None = None
    foreign_cpu_share: float | None = None
    completed: int | None = None
    latencies: str | None = None
    apart_ns: int | None = None
