"""Results of a step from a driver on another host, which may say anything."""

from __future__ import annotations

from typing import Any

import pytest

from pgdyno.load.step_results import StepResult, interval_record, step_result

SUMMARY = {"p50": 1000.0, "p95": 2000, "p99": 3000.0, "p999": 4000.0, "max": 5000.0}
ROLE: dict[str, Any] = {
    "name": "insert",
    "transactions": 7,
    "latency_us": SUMMARY,
    "lag_us": None,
    "statements": {"insert-50": {"count": 6}},
    "clients": [{"transactions": 7, "ended_s": 1.5}],
    "retries": {},
    "errors": [
        {"sqlstate": "40001", "statement": "insert", "count": 1},
        {"sqlstate": "40001", "statement": "", "count": 2},
    ],
}
INTERVAL = {
    "t_s": 3.0,
    "length_s": 0.5,
    "roles": [{"name": "insert", "transactions": 3, "latency_us": SUMMARY}],
}
REFUSED = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)


def told(*roles: Any, running_s: Any = 2.5, chores_s: Any = 0, cpu_s: Any = 0.5) -> StepResult:
    phase = {"arms": [{"running_s": running_s, "roles": list(roles)}], "driver": {"cpu_s": cpu_s}}
    return step_result(10.0, {"chores_s": chores_s}, phase, [], ("insert",))


def test_a_role_that_has_completed_something_has_worked() -> None:
    result = told(ROLE)
    assert result.has_worked("insert")
    assert not result.has_worked("query")
    assert not told({**ROLE, "transactions": 0, "latency_us": None}).has_worked("insert")


def test_transactions_that_were_given_up_are_counted_by_sqlstate() -> None:
    assert told(ROLE).roles["insert"].errors == {"40001": 3}


def test_a_step_of_chores_alone_has_no_roles() -> None:
    result = told(running_s=0, chores_s=1.25)
    assert (result.roles, result.running_s, result.chores_s) == ({}, 0.0, 1.25)


@pytest.mark.parametrize(
    "change",
    [
        {"name": "query"},  # and no role that inserts
        {"name": "in\x1b[2Jsert"},
        {"name": ["insert"]},
        {"transactions": -1},
        {"transactions": 7.0},
        {"transactions": True},
        {"transactions": 1 << 63},
        {"latency_us": None},
        {"latency_us": {"p50": 1.0}},
        {"latency_us": {**SUMMARY, "max": float("nan")}},
        {"latency_us": {**SUMMARY, "max": 10**400}},
        {"latency_us": {**SUMMARY, "p99": -1}},
        {"statements": []},
        {"statements": {"<b>": {"count": 1}}},
        {"statements": {f"s{n}": {"count": 1} for n in range(65)}},
        {"statements": {"point": {}}},
        {"clients": None},
        {"clients": [{"transactions": 1, "ended_s": "1"}]},
        {"retries": {"40001": "many"}},
        {"errors": None},
        {"errors": {"40001": 1}},
        {"errors": [{"sqlstate": "40001", "statement": "insert", "count": -1}]},
    ],
)
def test_a_role_that_cannot_have_been_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(REFUSED):
        told({**ROLE, **change})


@pytest.mark.parametrize(
    "times",
    [{"running_s": float("inf")}, {"running_s": 1e-300}, {"chores_s": None}, {"cpu_s": -1}, {"cpu_s": "1"}],
)
def test_times_that_cannot_have_been_are_refused(times: dict[str, Any]) -> None:
    with pytest.raises(REFUSED):
        told(ROLE, **times)


@pytest.mark.parametrize(
    "change",
    [
        {"length_s": 0},
        {"length_s": True},
        {"t_s": None},
        {"roles": {}},
        {"roles": [{"name": "insert", "transactions": "3", "latency_us": None}]},
        {"roles": [{"name": "insert", "transactions": 3, "latency_us": [1]}]},
    ],
)
def test_an_interval_that_cannot_have_been_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(REFUSED):
        interval_record({**INTERVAL, **change})


def test_an_interval_has_no_more_roles_than_a_step() -> None:
    roles = [{"name": f"r{n}", "transactions": 1, "latency_us": None} for n in range(999)]
    assert len(interval_record({**INTERVAL, "roles": roles}).transactions) == 64
