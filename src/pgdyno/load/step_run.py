"""One step of a multi-step workload, issued by pgdyno-driver from start to end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pgdyno.base import numbers
from pgdyno.load.driver_process import DriverProcess
from pgdyno.load.step_results import StepResult, interval_record, step_result
from pgdyno.model.experiments.step_record import IntervalRecord
from pgdyno.model.experiments.workload import Step

_LONGEST_S = 86_400.0  # arbitrary: limit on another host for a step that ends after a number of rows
_FASTEST_CLOCK, _SPARE_INTERVALS = 2, 10  # arbitrary bounds on the number of intervals


def run_step(
    driver: DriverProcess,
    job: str,
    step: Step,
    at_start: Callable[[], None] = lambda: None,
    at_end: Callable[[], None] = lambda: None,
) -> StepResult:
    """Run a step until its clients have finished, or for its duration.

    ``at_start`` is called before its clients connect, after the driver has arrived on a remote host;
    ``at_end`` when the clients have finished, while they are still connected.

    Raises: GeneratorFailedError, also for invalid results.
    """
    driver.start(job, at_start)
    began_s = time.monotonic()
    driver.send({"do": "run", "duration_s": step.duration_s, "interval_s": step.interval_s})
    intervals = list[IntervalRecord]()
    limit_s = (step.duration_s or 0.0) + step.patience_s  # between two events
    while (event := driver.receive(limit_s))["event"] != "run-ended":
        with _checked(driver):
            intervals.append(interval_record(driver.expect("interval", event)))
        _require_in_time(driver, step, len(intervals), time.monotonic() - began_s)
    at_end()
    phase = driver.stop()
    roles = ("insert",) if step.operations == "rows" else ("insert", "query")
    with _checked(driver):
        return step_result(began_s, event, phase, intervals, roles)


def longest_s(step: Step) -> float:
    """Return the time limit of a step issued by another host."""
    return _LONGEST_S if step.duration_s is None else step.duration_s + step.patience_s


def _require_in_time(driver: DriverProcess, step: Step, intervals: int, passed_s: float) -> None:
    """Raise GeneratorFailedError if intervals come too fast, or a remote step takes too long."""
    if intervals > _FASTEST_CLOCK * passed_s / step.interval_s + _SPARE_INTERVALS:
        raise driver.failure("it reports more intervals than the elapsed time allows")
    if driver.distance and passed_s > longest_s(step):
        raise driver.failure(f"the step did not end within {numbers.duration(longest_s(step))}")


@contextmanager
def _checked(driver: DriverProcess) -> Iterator[None]:
    """Raise errors from invalid events as GeneratorFailedError."""
    try:
        yield
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        raise driver.failure("it reports invalid results") from error
