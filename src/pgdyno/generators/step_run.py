"""One step of a workload of several, issued by pgdyno-driver from its beginning to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgdyno.generators.driver_process import DriverProcess

_GRACE_S = 600.0  # beyond a step's planned time, or between two intervals of one without: index builds


@dataclass(frozen=True)
class RoleResult:
    """What one role of a step has done. Latencies in ms by percentile: p50, p95, p99, p999, max."""

    transactions: int
    statements: Mapping[str, int]
    latency_ms: Mapping[str, float]


@dataclass(frozen=True)
class StepResult:
    """What a step has done. ``chores_s`` is what came after its clients, such as building indexes."""

    running_s: float
    chores_s: float
    roles: Mapping[str, RoleResult]
    intervals: Sequence[Mapping[str, Any]]
    client_cpu_us: float


def run_step(driver: DriverProcess, job: str, *, duration_s: float | None, interval_s: float) -> StepResult:
    """Run a step until its clients have finished, or for ``duration_s``.

    Raises: GeneratorFailedError.
    """
    driver.start(job)
    driver.send({"do": "run", "duration_s": duration_s, "interval_s": interval_s})
    intervals = []
    limit_s = (duration_s or 0.0) + _GRACE_S
    while (event := driver.receive(limit_s))["event"] != "run-ended":
        intervals.append(driver.expect("interval", event))
    phase = driver.stop()
    (arm,) = phase["arms"]
    return StepResult(
        running_s=arm["running_s"],
        chores_s=event["chores_s"],
        roles={role["name"]: _role(role) for role in arm["roles"]},
        intervals=intervals,
        client_cpu_us=phase["driver"]["cpu_s"] * 1e6,
    )


def _role(role: Mapping[str, Any]) -> RoleResult:
    latency_us = role["latency_us"] or {}
    return RoleResult(
        role["transactions"],
        {name: statement["count"] for name, statement in role["statements"].items()},
        {name: value / 1000 for name, value in latency_us.items()},
    )
