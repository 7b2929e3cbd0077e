"""Turns of pgdyno-driver: one process, connected to all arms, drains transactions before the next turn.

So no transaction spans two turns, latencies need no correction, and the server of a resting arm has no open
transaction. The same code in the same process drives all arms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.load.driver_process import DriverProcess, Event
from pgdyno.load.transaction_log import TransactionLog
from pgdyno.load.turns import Servers
from pgdyno.model.experiments.slices import HostLog, Slice

_SHOWN = 80  # characters of an invalid arm number
_LARGEST = 1 << 63  # limit of the store's integers
_DRAIN_TIMEOUT_S = 90.0  # above the driver's own limit of 60 s, so that its error arrives first


@dataclass
class DrainedTurns:
    """A driver for all arms, started by the first warm-up.

    ``order`` lists the arms in the job's order, in which the driver connects and numbers them.
    ``when_ended`` is called after the end of all load.
    """

    driver: DriverProcess
    job: str
    log_prefixes: Sequence[Path]
    order: Sequence[int]
    when_ended: Callable[[], None] = lambda: None
    _client_cpu_us: dict[int, float] = field(default_factory=dict, init=False)

    def warm_up(self, arm: int, duration_s: float) -> None:
        """Run one long turn of the arm; the first call starts the driver and connects all arms."""
        if not self.driver.is_started:
            self.driver.start(self.job)
        for _ in self._take([arm], duration_s, 0.0, ()):
            pass

    def take(
        self, order: Sequence[int], *, slice_s: float, head_s: float, servers: Servers
    ) -> Iterator[Slice]:
        """Run turns. The driver, on the servers' host, reads their CPU time at each turn's start and end."""
        return self._take(order, slice_s, head_s, servers.pids)

    def client_cpu_us(self, arm: int) -> tuple[float, ...] | None:
        """Return the driver's CPU time during the arm's turns."""
        used_us = self._client_cpu_us.get(arm)
        return None if used_us is None else (used_us,)

    def pids(self, _arm: int) -> tuple[int, ...]:
        """Return the driver's process, which issues the loads of all arms."""
        return self.driver.pids

    def end(self) -> None:
        """Stop the driver and wait for its end.

        Raises: GeneratorFailedError; as ``when_ended``.
        """
        self.driver.stop()
        self.when_ended()

    def logs(self, arm: int) -> Sequence[HostLog]:
        """Return the transactions of an arm."""
        return (HostLog(TransactionLog(self.log_prefixes[arm]).read_new()),)

    def close(self) -> None:
        """Kill the driver if it still runs."""
        self.driver.close()

    def _take(
        self, order: Sequence[int], slice_s: float, head_s: float, pids: Sequence[Sequence[int]]
    ) -> Iterator[Slice]:
        numbers = [self.order.index(arm) for arm in order]
        self.driver.send(turns_command(numbers, slice_s, head_s, pids))
        for arm, number in zip(order, numbers, strict=True):
            taken, client_cpu_ns = receive_slice(self.driver, number, arm, slice_s)
            self._client_cpu_us[arm] = self._client_cpu_us.get(arm, 0.0) + client_cpu_ns / 1000
            yield taken
        await_end(self.driver, slice_s)


def turns_command(
    numbers: Sequence[int],
    slice_s: float,
    head_s: float,
    pids: Sequence[Sequence[int]] = (),
    delay_s: float = 0.0,
) -> Event:
    """Return the command for turns of arms, by number in the job; each turn starts after ``delay_s``."""
    lengths = {"slice_s": slice_s, "head_s": head_s, "delay_s": delay_s}
    return {"do": "turns", "order": list(numbers), "pids": [list(of_arm) for of_arm in pids], **lengths}


def receive_slice(driver: DriverProcess, number: int, arm: int, slice_s: float) -> tuple[Slice, float]:
    """Return the next turn that the driver reports, as ``slice_of`` does. Raises: GeneratorFailedError."""
    event = driver.expect("slice", driver.receive(slice_s + _DRAIN_TIMEOUT_S))
    try:
        return slice_of(event, number, arm)
    except ValueError as error:
        raise driver.failure(str(error)) from None


def await_end(driver: DriverProcess, slice_s: float) -> None:
    """Wait until the driver reports the end of a command's turns. Raises: GeneratorFailedError."""
    driver.expect("turns-ended", driver.receive(slice_s + _DRAIN_TIMEOUT_S))


def slice_of(event: Event, number: int, arm: int) -> tuple[Slice, float]:
    """Return an arm's turn, and its load's CPU time in ns. ``number`` is the arm's number in the job.

    Raises: ValueError if the event is of a different arm's turn, or invalid.
    """
    reported = event.get("arm")
    if type(reported) is not int or reported != number:
        raise ValueError(f"it reports a turn of arm {str(reported)[:_SHOWN]!a} instead of arm {number}")
    start_ns, end_ns, drained_ns = (_count(event, name) for name in ("start_ns", "end_ns", "drained_ns"))
    if not start_ns <= end_ns <= drained_ns:
        raise ValueError("it reports a turn that ends before it begins")
    servers_ns = event.get("server_cpu_ns")
    if not isinstance(servers_ns, list) or not all(_is_integer(one) for one in servers_ns):
        raise ValueError("it reports a turn with invalid server_cpu_ns")
    return Slice(arm, start_ns, end_ns, tuple(servers_ns), drained_ns), float(_count(event, "client_cpu_ns"))


def _count(event: Event, name: str) -> int:
    value: object = event.get(name)
    if not isinstance(value, int) or not _is_integer(value) or value < 0:
        raise ValueError(f"it reports a turn with an invalid {name}")
    return value


def _is_integer(value: object) -> bool:
    """Whether it is an integer in the store's range; True and 1.0 are not."""
    return type(value) is int and -_LARGEST <= value < _LARGEST
