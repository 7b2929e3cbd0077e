"""Metrics: quantities of a trial, with their units and their better direction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

Readings = Mapping[str, tuple[float, ...]]
"""Counters by metric; metrics of a meter that cannot be read are absent."""


class Better(StrEnum):
    """Which direction of a metric is an improvement."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"  # explains, never decides


@dataclass(frozen=True)
class Metric:
    """A measured quantity. ``has_verdict`` metrics get an interval and a verdict.

    ``is_level``: the value at the end of a block; other metrics cover the block from beginning to end.
    """

    name: str
    title: str
    unit: str
    better: Better
    has_verdict: bool = False
    is_level: bool = False


THROUGHPUT = "throughput_tps"  # the primary metric
SERVER_CPU = "server_cpu_us_per_transaction"
CLIENT_CPU = "client_cpu_us_per_transaction"
LAUNCHED_WORKERS = "parallel_workers_launched_share"
PLANNED_WORKERS = "parallel_workers_planned"
P50, P95, P99 = "latency_ms_p50", "latency_ms_p95", "latency_ms_p99"
TAIL_MEAN = "latency_ms_tail_mean"  # see measure/blocks/attribution.py
TAIL_MEAN_ALONE = "latency_ms_tail_mean_alone"  # in a stretch without load on other servers
DRAIN_SHARE = "drain_share"
WAL_SEGMENTS = "wal_segments_created"
WAL_BYTES = "wal_bytes_per_transaction"

METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(THROUGHPUT, "throughput", "transactions/s", Better.HIGHER, has_verdict=True),
        Metric(
            SERVER_CPU,
            "server CPU per transaction",
            "µs",
            Better.LOWER,
            has_verdict=True,
        ),
        Metric(P50, "median latency", "ms", Better.LOWER),
        Metric(P95, "95th percentile latency", "ms", Better.LOWER),
        Metric(TAIL_MEAN, "mean latency of the slowest 5 %", "ms", Better.LOWER, has_verdict=True),
        Metric(P99, "99th percentile latency", "ms", Better.LOWER, has_verdict=True),
        Metric(TAIL_MEAN_ALONE, "mean latency of the slowest 5 %, alone", "ms", Better.NEITHER),
        Metric("latency_ms_p999", "99.9th percentile latency", "ms", Better.NEITHER),
        Metric("latency_ms_max", "longest latency", "ms", Better.NEITHER),
        Metric("background_rate_share", "background rate reached, share of its target", "", Better.NEITHER),
        Metric(CLIENT_CPU, "client CPU per transaction", "µs", Better.NEITHER),
        Metric("context_switches_per_transaction", "context switches per transaction", "", Better.NEITHER),
        Metric("minor_faults_per_transaction", "minor page faults per transaction", "", Better.NEITHER),
        Metric(
            "page_table_bytes",
            "page tables of the server's processes",
            "B",
            Better.NEITHER,
            is_level=True,
        ),
        Metric(
            "huge_page_bytes",
            "memory on huge pages, of the process that has most of it",
            "B",
            Better.NEITHER,
            is_level=True,
        ),
        Metric("read_bytes_per_transaction", "bytes read from storage per transaction", "B", Better.NEITHER),
        Metric(
            "written_bytes_per_transaction", "bytes written to storage per transaction", "B", Better.NEITHER
        ),
        Metric(WAL_BYTES, "WAL per transaction", "B", Better.NEITHER),
        Metric(
            "wal_full_page_images_per_transaction",
            "full-page images in the WAL per transaction",
            "",
            Better.NEITHER,
        ),
        Metric(WAL_SEGMENTS, "WAL segments created", "", Better.NEITHER),
        Metric("checkpoints", "checkpoints completed", "", Better.NEITHER),
        Metric("autovacuums", "tables vacuumed by autovacuum", "", Better.NEITHER),
        Metric("cache_hit_ratio", "shared buffer hit ratio", "", Better.NEITHER),
        Metric(LAUNCHED_WORKERS, "parallel workers launched, share of those planned", "", Better.NEITHER),
        Metric(PLANNED_WORKERS, "parallel workers planned", "", Better.NEITHER),
        Metric(DRAIN_SHARE, "ends of turns, share of the turns", "", Better.NEITHER),
        Metric("frozen_cpu_share", "server CPU used while frozen, share of its CPU", "", Better.NEITHER),
    )
}
