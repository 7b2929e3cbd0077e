"""What the driver says about a step, in its own words, as records."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.load.driver_process import DriverProcess
from pgdyno.load.step_results import from_the_first, interval_record, role_record
from pgdyno.load.timed_run import run_step
from pgdyno.model.experiments.step_record import ClientRecord, IntervalRecord, RoleRecord
from pgdyno.model.experiments.workload import Step

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


# A program that takes a job and commands as the driver does, keeps what it was told, and says what it is
# given after "run" and after "stop".
PROGRAM = """
import pathlib, sys
told, running, stopped = sys.argv[1:]
print('{"event": "ready"}', flush=True)
for said, line in zip(["", running, stopped], sys.stdin):
    with pathlib.Path(told).open("a") as file:
        file.write(line)
    print(said, end="", flush=True)
"""
STEP = Step("step", {}, 1, "queries", rows_per_commit=1, duration_s=0.5, interval_s=0.25, patience_s=120.0)


def lines(*events: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(event)}\n" for event in events)


RUN_ENDED = {"event": "run-ended", "chores_s": 1.25}
INSERTS = {**ROLE, "name": "insert", "statements": {}}
PHASE = {"event": "phase", "arms": [{"running_s": 2.5, "roles": [INSERTS, ROLE]}], "driver": {"cpu_s": 0.5}}


@contextmanager
def program(directory: Path, running: str) -> Iterator[DriverProcess]:
    """Provide the program as a driver; it keeps what it was told in the file ``told``."""
    argv = [sys.executable, "-c", PROGRAM, str(directory / "told"), running, lines(PHASE, {"event": "end"})]
    with closing(DriverProcess(argv, list, {}, directory / "output")) as driver:
        yield driver


def test_beginning_and_end_are_told_before_clients_connect_and_while_they_are_connected(
    tmp_path: Path,
) -> None:
    told_at_end, told_at_start = [], []
    with program(tmp_path, lines(interval(0.25, 0.25, SUMMARY), RUN_ENDED)) as driver:
        found = run_step(
            driver,
            "{}",
            STEP,
            lambda: told_at_start.append((tmp_path / "told").exists()),
            lambda: told_at_end.append((tmp_path / "told").read_text().splitlines()),
        )
    assert told_at_start == [False]  # not yet its job
    run = {"do": "run", "duration_s": 0.5, "interval_s": 0.25}
    assert [[json.loads(line) for line in told] for told in told_at_end] == [[{}, run]]  # not yet "stop"
    assert json.loads((tmp_path / "told").read_text().splitlines()[-1]) == {"do": "stop"}
    assert (found.running_s, found.chores_s, found.client_cpu_us) == (2.5, 1.25, 500_000)
    assert found.intervals == (IntervalRecord(0.0, 0.25, {"query": 3}, {"query": 5.0}),)
    assert found.roles["query"].transactions == 7


def test_a_driver_that_falls_silent_fails_after_the_steps_duration_and_patience(tmp_path: Path) -> None:
    with program(tmp_path, lines(interval(0.25, 0.25, SUMMARY))) as driver:
        with pytest.raises(GeneratorFailedError) as caught:
            run_step(driver, "{}", replace(STEP, patience_s=0.5))
        assert caught.value.message == "pgdyno-driver failed: it sent nothing for 1 s"


@pytest.mark.parametrize(
    ("running", "said"),
    [
        ([interval(0.25, 0.25, SUMMARY)] * 300, "it reports more intervals than the elapsed time allows"),
        ([{"event": "interval", "t_s": 1.0}], "it reports invalid results"),
        ([{"event": "run-ended", "chores_s": "1"}], "it reports invalid results"),
        ([{"event": "slice"}], 'it sent "slice" instead of "interval"'),
    ],
)
def test_what_no_step_can_tell_is_refused(tmp_path: Path, running: list[dict[str, Any]], said: str) -> None:
    with program(tmp_path, lines(*running)) as driver, pytest.raises(GeneratorFailedError) as caught:
        run_step(driver, "{}", STEP)
    assert caught.value.message == f"pgdyno-driver failed: {said}"


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
