"""The record of one step on one arm: the evidence for its metrics.

A step counts rows ("l.*" of the Insert Benchmark) or queries ("q*"). Times are seconds of wall-clock time
since the beginning of the step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pgdyno.postgres.plan_document import PlanNode


class StallCause(StrEnum):
    """Possible causes of a stall in a step."""

    CHECKPOINT = "checkpoint"
    AUTOVACUUM = "autovacuum"
    WAL = "WAL"
    IO = "I/O"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ClientRecord:
    """One client of a role: its commits, and the time when its last transaction ended."""

    transactions: int
    ended_s: float


@dataclass(frozen=True)
class RoleRecord:
    """All clients of one kind: "insert", "delete", "query", or "maker", which reads the oldest row's key.

    ``latency_ms`` and ``lag_ms`` are by percentile: p50, p95, p99, p999, max; latency counts from the
    intended start, lag is the delay of the actual start. ``statements`` are completed executions by name,
    ``retries`` and ``errors`` are numbers of transactions by SQLSTATE.
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
    """An interval of a step, by default one second. By role: transactions, and the longest latency (ms)."""

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

    ``operations`` is the counted unit, "rows" or "queries"; ``completed`` is their number.
    ``counters`` are differences over the step by dotted name, such as ``pg_stat_wal.wal_fpi`` and
    ``pg_stat_io.client_backend.relation.normal.reads``; views missing on a server are absent.
    ``waits`` are shares of the samples of busy backends by wait event type, "CPU" without a wait event.
    ``published`` are the benchmark's 21 published figures by their names; unavailable ones are absent.
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
    target_rows_per_s: float | None = None  # of the inserts concurrent with queries, all clients together


PREFIX = "tpch-"  # of the workloads' names
POWER_RUN, THROUGHPUT_RUN = "power", "throughput"
TPCH_RUNS = {POWER_RUN: "power run", THROUGHPUT_RUN: "throughput run"}
"""The full names of the runs, by their short names."""
REFRESHES = ("rf1", "rf2")
DISCLAIMER = "TPC-H-like: not a TPC-H result, and not comparable with published TPC-H results"


@dataclass(frozen=True)
class TpchFacts:
    """The size, and the query plans of the validation run, by variant and query."""

    thousandths: int  # the scale
    streams: int  # of the throughput run
    plans: Mapping[str, Mapping[str, PlanNode]] = field(default_factory=dict)

    @property
    def scale(self) -> str:
        """The scale factor as text."""
        return scale_text(self.thousandths)


def scale_text(thousandths: int) -> str:
    """Return a scale factor given in thousandths as text: 100 is "0.1"."""
    return f"{thousandths / 1000:.3f}".rstrip("0").rstrip(".")
