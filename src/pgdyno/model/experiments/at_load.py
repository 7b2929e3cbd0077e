"""Latencies at a fixed arrival rate, as on most servers. They have no verdict."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.experiments.verdict import Interval

AT_LOAD = "accelerate-at-load"
"""The name of the experiments that these are taken from: a part of another one, and never the newest."""


@dataclass(frozen=True)
class LatencyAtLoad:
    """One latency metric in ms, of the baseline and the plan; their ratio, None after too few rounds."""

    metric: str
    baseline_ms: float
    plan_ms: float
    ratio: Interval | None


@dataclass(frozen=True)
class AtLoad:
    """Measurements of one workload at ``rate_tps`` transactions per second on both servers.

    ``share`` is that rate as a share of the baseline's throughput where every client began a transaction as
    soon as the one before had ended. ``experiment_id`` is the experiment with the blocks. Latencies count
    from the intended start: waiting for a busy server is part of them.
    """

    workload: str
    rate_tps: float
    share: float
    experiment_id: str
    latencies: tuple[LatencyAtLoad, ...]
