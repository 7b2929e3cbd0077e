"""One load on one server by pgdyno-driver, without a comparison: for a duration, a count, or a step."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pgdyno.base import numbers
from pgdyno.load.driver_process import DriverProcess, Event
from pgdyno.load.step_results import StepResult, interval_record, step_result
from pgdyno.model.experiments.failures import Failures, added_up, failed_share, require_few
from pgdyno.model.experiments.step_record import IntervalRecord
from pgdyno.model.experiments.workload import Step

_DRAIN_TIMEOUT_S = 90.0  # above the driver's own limit of 60 s, so that its error arrives first
_INTERVAL_LIMIT_S = 300.0  # between two events; the driver reports an interval every second
_LONGEST_S = 86_400.0  # arbitrary: limit on another host for a step that ends after a number of rows
_FASTEST_CLOCK, _SPARE_INTERVALS = 2, 10  # arbitrary bounds on the number of intervals


@dataclass(frozen=True)
class TimedRun:
    """The result of a run."""

    running_s: float
    transactions: int
    failures: tuple[Failures, ...]

    @property
    def tps(self) -> float:
        """Transactions per second."""
        return self.transactions / self.running_s if self.running_s else 0.0

    @property
    def failed_share(self) -> float:
        """The share of the transactions that failed."""
        return failed_share(self.transactions, self.failures)


def run_for(
    driver: DriverProcess, job: str, duration_s: float, report: Callable[[float], None] = lambda _: None
) -> TimedRun:
    """Issue a job's load for ``duration_s``; ``report`` gets the elapsed time in seconds.

    Raises: GeneratorFailedError.
    """
    driver.start(job)
    driver.send({"do": "run", "duration_s": duration_s})
    while (event := driver.receive(duration_s + _DRAIN_TIMEOUT_S))["event"] != "run-ended":
        report(driver.expect("interval", event)["t_s"])
    (arm,) = driver.stop()["arms"]
    return TimedRun(arm["running_s"], _transactions(arm), _failures(arm))


@dataclass(frozen=True)
class RestingRun:
    """A paused load: its clients are connected, and no transaction is open."""

    driver: DriverProcess

    def go_on(self, duration_s: float) -> int:
        """Issue transactions for ``duration_s``, and return their number when the clients rest again.

        Raises: GeneratorFailedError, also if too many transactions failed.
        """
        self.driver.send({"do": "run", "duration_s": duration_s})
        while (event := self.driver.receive(duration_s + _DRAIN_TIMEOUT_S))["event"] != "run-ended":
            self.driver.expect("interval", event)
        self.driver.send({"do": "phase", "name": "next"})
        phase = self.driver.expect("phase", self.driver.receive(_DRAIN_TIMEOUT_S))
        (arm,) = phase["arms"]
        _require_few(arm)
        return _transactions(arm)


def _transactions(arm: Event) -> int:
    return sum(role["transactions"] for role in arm["roles"])


def _failures(arm: Event) -> tuple[Failures, ...]:
    return added_up(
        Failures(one["sqlstate"], one["count"], one["statement"])
        for role in arm["roles"]
        for one in role["errors"]
    )


def _require_few(arm: Event) -> None:
    require_few(arm["name"], _transactions(arm), _failures(arm))


def run_counted(driver: DriverProcess, job: str, when_connected: Callable[[], None]) -> None:
    """Issue a job's fixed number of transactions per client.

    ``when_connected`` is called before the first one. Raises: GeneratorFailedError, also if too many failed.
    """
    driver.start(job)
    when_connected()
    driver.send({"do": "run"})
    while (event := driver.receive(_INTERVAL_LIMIT_S))["event"] != "run-ended":
        driver.expect("interval", event)
    (arm,) = driver.stop()["arms"]
    _require_few(arm)


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
