"""A step of a benchmark, run by the driver."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.programs.load.test_step_run import ROLE, SUMMARY, interval

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.load.driver_process import DriverProcess
from pgdyno.load.timed_run import run_step
from pgdyno.model.experiments.step_record import IntervalRecord
from pgdyno.model.experiments.workload import Step

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
RUN_ENDED = {"event": "run-ended", "chores_s": 1.25}
INSERTS = {**ROLE, "name": "insert", "statements": {}}
PHASE = {"event": "phase", "arms": [{"running_s": 2.5, "roles": [INSERTS, ROLE]}], "driver": {"cpu_s": 0.5}}
STEP = Step("step", {}, 1, "queries", rows_per_commit=1, duration_s=0.5, interval_s=0.25, patience_s=120.0)


def lines(*events: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(event)}\n" for event in events)


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
