"""One load on one server by pgdyno-driver, without a comparison: for a time, a number, or with rests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pgdyno.load.driver_process import DriverProcess, Event
from pgdyno.model.experiments.failures import Failures, added_up, failed_share, require_few

_DRAIN_TIMEOUT_S = 90.0  # above the driver's own limit of 60 s, so that its message is seen
_INTERVAL_LIMIT_S = 300.0  # between two signs of life; it tells each second how far it is


@dataclass(frozen=True)
class TimedRun:
    """The result."""

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
    driver: DriverProcess, job: str, duration_s: float, tell: Callable[[float], None] = lambda _: None
) -> TimedRun:
    """Issue a job's load for a time; ``tell`` is told how much of it has passed.

    Raises: GeneratorFailedError.
    """
    driver.start(job)
    driver.send({"do": "run", "duration_s": duration_s})
    while (event := driver.receive(duration_s + _DRAIN_TIMEOUT_S))["event"] != "run-ended":
        tell(driver.expect("interval", event)["t_s"])
    (arm,) = driver.stop()["arms"]
    return TimedRun(arm["running_s"], _transactions(arm), _failures(arm))


@dataclass(frozen=True)
class RestingRun:
    """A load whose clients are connected, and rest: no transaction is under way."""

    driver: DriverProcess

    def go_on(self, duration_s: float) -> int:
        """Issue transactions for a time; return how many were done when the clients rest again.

        Raises: GeneratorFailedError, also if too many of them failed.
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
    """Issue a job's transactions until its clients have done their number of them.

    ``when_connected`` is called before the first. Raises: GeneratorFailedError.
    """
    driver.start(job)
    when_connected()
    driver.send({"do": "run"})
    while (event := driver.receive(_INTERVAL_LIMIT_S))["event"] != "run-ended":
        driver.expect("interval", event)
    (arm,) = driver.stop()["arms"]
    _require_few(arm)
