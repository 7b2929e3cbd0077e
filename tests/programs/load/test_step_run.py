"""What the driver says about a step, in its own words, as records."""

from __future__ import annotations

from typing import Any

from pgdyno.load.step_results import from_the_first, interval_record, role_record
from pgdyno.model.experiments.step_record import ClientRecord, IntervalRecord, RoleRecord

SUMMARY = {"mean": 2.0, "p50": 1000.0, "p95": 2000.0, "p99": 3000.0, "p999": 4000.0, "max": 5000.0}
IN_MS = {"p50": 1.0, "p95": 2.0, "p99": 3.0, "p999": 4.0, "max": 5.0}

# A role of the event "phase", shortened: the driver's histogram and its own rates are not used.
ROLE: dict[str, Any] = {
    "name": "query",
    "transactions": 7,
    "transactions_per_s": 3.5,
    "rows": 70,
    "latency_us": SUMMARY,
    "lag_us": None,
    "statements": {
        "point": {"count": 6, "latency_us": SUMMARY},
        "max-id": {"count": 1, "latency_us": SUMMARY},
    },
    "clients": [{"transactions": 3, "ended_s": 1.5}, {"transactions": 4, "ended_s": 2.0}],
    "retries": {"40001": 2},
    "errors": [],
}


def interval(t_s: float, length_s: float, latency_us: dict[str, float] | None) -> dict[str, Any]:
    role = {"name": "query", "transactions": 3, "rows": 30, "failed": 0, "latency_us": latency_us}
    return {"event": "interval", "t_s": t_s, "length_s": length_s, "roles": [role]}


def test_a_role_keeps_counts_and_percentiles_in_milliseconds() -> None:
    assert role_record(ROLE) == RoleRecord(
        name="query",
        transactions=7,
        statements={"point": 6, "max-id": 1},
        latency_ms=IN_MS,
        lag_ms={},
        clients=(ClientRecord(3, 1.5), ClientRecord(4, 2.0)),
        retries={"40001": 2},
        errors={},
    )


def test_a_role_without_transactions_has_no_latency() -> None:
    assert role_record({**ROLE, "transactions": 0, "latency_us": None}).latency_ms == {}


def test_intervals_begin_when_the_clients_do_not_when_the_driver_was_ready() -> None:
    told = [interval_record(interval(3.25, 0.25, SUMMARY)), interval_record(interval(3.75, 0.5, None))]
    assert from_the_first(told) == (
        IntervalRecord(0.0, 0.25, {"query": 3}, {"query": 5.0}),
        IntervalRecord(0.25, 0.5, {"query": 3}, {}),
    )


def test_a_step_may_be_over_before_its_first_interval() -> None:
    assert from_the_first([]) == ()
