"""The record of one step on one arm: the evidence behind its metrics.

A step's own operations are rows ("l.*" of the Insert Benchmark) or queries ("q*"). Times are seconds from
the step's beginning, on the wall clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class StallCause(StrEnum):
    """Possible causes of a stall in a step."""

    CHECKPOINT = "checkpoint"
    AUTOVACUUM = "autovacuum"
    WAL = "WAL"
    IO = "I/O"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ClientRecord:
    """One client of a role: its commits, and the end of its last transaction."""

    transactions: int
    ended_s: float


@dataclass(frozen=True)
class RoleRecord:
    """All clients of one kind: "insert", "delete", "query", or "maker", which reads the oldest row's key.

    ``latency_ms`` and ``lag_ms`` are by percentile: p50, p95, p99, p999, max; latency counts from the
    intended start, lag is how late a transaction began. ``statements`` are completed executions by name,
    ``retries`` and ``errors`` transactions by SQLSTATE.
    """

    name: str
    transactions: int
    statements: Mapping[str, int] = field(default_factory=dict)
    latency_ms: Mapping[str, float] = field(default_factory=dict)
    lag_ms: Mapping[str, float] = field(default_factory=dict)
    clients: tuple[ClientRecord, ...] = ()
    retries: Mapping[str, int] = field(default_factory=dict)
    errors: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class IntervalRecord:
    """A part of a step, by default one second. By role: transactions, and the longest latency (ms)."""

    start_s: float
    length_s: float
    transactions: Mapping[str, int]
    latency_ms_max: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Stall:
    """Successive intervals below half of the step's median rate. ``why`` is the evidence for the cause."""

    start_s: float
    end_s: float
    cause: StallCause
    why: str


@dataclass(frozen=True)
class StepRecord:
    """One step on one arm.

    ``operations`` says what is counted: "rows" or "queries", ``completed`` how many of them.
    ``counters`` are differences over the step by dotted name, such as ``pg_stat_wal.wal_fpi`` and
    ``pg_stat_io.client_backend.relation.normal.reads``; views that a server does not have are absent.
    ``waits`` are shares of the samples of busy backends by wait event type, "CPU" where there was none.
    ``published`` are the benchmark's own 21 figures by their own names; those not to be had are absent.
    """

    operations: str
    completed: int
    running_s: float
    chores_s: float
    roles: tuple[RoleRecord, ...] = ()
    intervals: tuple[IntervalRecord, ...] = ()
    stalls: tuple[Stall, ...] = ()
    waits: Mapping[str, float] = field(default_factory=dict)
    wait_samples: int = 0
    counters: Mapping[str, float] = field(default_factory=dict)
    dead_tuples: int | None = None  # of all tables when the step began
    published: Mapping[str, float] = field(default_factory=dict)
    target_rows_per_s: float | None = None  # of the inserts beside the queries, all clients together
