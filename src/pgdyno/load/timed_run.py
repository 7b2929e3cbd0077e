"""One load on one server by pgdyno-driver, without a comparison: for a duration, a count, or with pauses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pgdyno.load.driver_process import DriverProcess, Event
from pgdyno.model.experiments.failures import Failures, added_up, failed_share, require_few

_DRAIN_TIMEOUT_S = 90.0  # above the driver's own limit of 60 s, so that its error arrives first
_INTERVAL_LIMIT_S = 300.0  # between two events; the driver reports an interval every second


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
