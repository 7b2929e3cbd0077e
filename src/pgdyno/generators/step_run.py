"""One step of a multi-step workload, issued by pgdyno-driver from start to end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pgdyno.generators.driver_process import DriverProcess, Event
from pgdyno.model.experiments.step_record import ClientRecord, IntervalRecord, RoleRecord
from pgdyno.model.experiments.workload import Step

_PERCENTILES = ("p50", "p95", "p99", "p999", "max")


@dataclass(frozen=True)
class StepResult:
    """The results of a step.

    ``began_s`` is when its clients began, on the monotonic clock; ``chores_s`` is what came after them, such
    as building indexes. What is left when the clients have ended is an interval, too: it is shorter than the
    others, and missing if it is less than a tenth of one.
    """

    began_s: float
    running_s: float
    chores_s: float
    roles: Mapping[str, RoleRecord]
    intervals: tuple[IntervalRecord, ...]
    client_cpu_us: float


def run_step(
    driver: DriverProcess, job: str, step: Step, at_end: Callable[[], None] = lambda: None
) -> StepResult:
    """Run a step until its clients have finished, or for its duration.

    ``at_end`` is called then, while the clients are still connected.

    Raises: GeneratorFailedError.
    """
    driver.start(job)
    began_s = time.monotonic()
    driver.send({"do": "run", "duration_s": step.duration_s, "interval_s": step.interval_s})
    intervals = []
    limit_s = (step.duration_s or 0.0) + step.patience_s  # between two signs of life
    while (event := driver.receive(limit_s))["event"] != "run-ended":
        intervals.append(driver.expect("interval", event))
    at_end()
    phase = driver.stop()
    (arm,) = phase["arms"]
    return StepResult(
        began_s=began_s,
        running_s=arm["running_s"],
        chores_s=event["chores_s"],
        roles={role["name"]: role_record(role) for role in arm["roles"]},
        intervals=interval_records(intervals),
        client_cpu_us=phase["driver"]["cpu_s"] * 1e6,
    )


def role_record(role: Mapping[str, Any]) -> RoleRecord:
    """Return the record of one role from the driver's results."""
    return RoleRecord(
        name=role["name"],
        transactions=role["transactions"],
        statements={name: statement["count"] for name, statement in role["statements"].items()},
        latency_ms=_percentiles_ms(role["latency_us"]),
        lag_ms=_percentiles_ms(role["lag_us"]),
        clients=tuple(ClientRecord(one["transactions"], one["ended_s"]) for one in role["clients"]),
        retries=role["retries"],
        errors=role["errors"],
    )


def interval_records(events: Sequence[Event]) -> tuple[IntervalRecord, ...]:
    """Return the driver's intervals, which end at ``t_s`` of its clock, on the clock of the step."""
    began_s = events[0]["t_s"] - events[0]["length_s"] if events else 0.0
    return tuple(
        IntervalRecord(
            start_s=event["t_s"] - event["length_s"] - began_s,
            length_s=event["length_s"],
            transactions={role["name"]: role["transactions"] for role in event["roles"]},
            latency_ms_max={
                role["name"]: role["latency_us"]["max"] / 1000
                for role in event["roles"]
                if role["latency_us"]
            },
        )
        for event in events
    )


def _percentiles_ms(summary_us: Mapping[str, float] | None) -> dict[str, float]:
    return {} if summary_us is None else {name: summary_us[name] / 1000 for name in _PERCENTILES}
