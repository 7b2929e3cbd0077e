"""Turns of pgdyno-driver: one process, connected to all arms.

It lets transactions end before the next turn.

So no transaction straddles a turn, latencies need no correction, and the server of an arm at rest has no
transaction open. All arms are driven by the same code in the same process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.load.driver_process import DriverProcess, Event
from pgdyno.load.transaction_log import TransactionLog
from pgdyno.load.turns import Servers
from pgdyno.model.experiments.experiment import HostLog, Slice

_SHOWN = 80  # characters of an arm that is none
_LARGEST = 1 << 63  # that the store can keep
_DRAIN_TIMEOUT_S = 90.0  # above the driver's own limit of 60 s, so that its message is seen


@dataclass
class DrainedTurns:
    """A driver for all arms. It is started by the first warm-up.

    ``order`` has the arms as the job names them: the driver connects them, and looks at them, in that order.
    ``when_ended`` is called when the load of all has ended.
    """

    driver: DriverProcess
    job: str
    log_prefixes: Sequence[Path]
    order: Sequence[int]
    when_ended: Callable[[], None] = lambda: None
    _client_cpu_us: dict[int, float] = field(default_factory=dict, init=False)

    def warm_up(self, arm: int, duration_s: float) -> None:
        """Give the arm one long turn; the first one starts the driver and connects all arms."""
        if not self.driver.is_started:
            self.driver.start(self.job)
        for _ in self._take([arm], duration_s, 0.0, ()):
            pass

    def take(
        self, order: Sequence[int], *, slice_s: float, head_s: float, servers: Servers
    ) -> Iterator[Slice]:
        """Have the driver give turns; beside the servers, it reads their CPU time at the edges itself."""
        return self._take(order, slice_s, head_s, servers.pids)

    def client_cpu_us(self, arm: int) -> tuple[float, ...] | None:
        """Return the CPU time of the driver during the arm's turns."""
        used_us = self._client_cpu_us.get(arm)
        return None if used_us is None else (used_us,)

    def pids(self, _arm: int) -> tuple[int, ...]:
        """Return the driver, which issues the loads of all arms."""
        return self.driver.pids

    def end(self) -> None:
        """Stop the driver and wait for its last word.

        Raises: GeneratorFailedError; what ``when_ended`` raises.
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
            taken, client_cpu_ns = told_slice(self.driver, number, arm, slice_s)
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
    """Return the command for turns of arms, by their numbers in the job; each waits before it begins."""
    lengths = {"slice_s": slice_s, "head_s": head_s, "delay_s": delay_s}
    return {"do": "turns", "order": list(numbers), "pids": [list(of_arm) for of_arm in pids], **lengths}


def told_slice(driver: DriverProcess, number: int, arm: int, slice_s: float) -> tuple[Slice, float]:
    """Return the turn that the driver tells of next, as ``slice_of`` does. Raises: GeneratorFailedError."""
    event = driver.expect("slice", driver.receive(slice_s + _DRAIN_TIMEOUT_S))
    try:
        return slice_of(event, number, arm)
    except ValueError as error:
        raise driver.failure(str(error)) from None


def await_end(driver: DriverProcess, slice_s: float) -> None:
    """Wait until the driver says that all turns of a command have ended. Raises: GeneratorFailedError."""
    driver.expect("turns-ended", driver.receive(slice_s + _DRAIN_TIMEOUT_S))


def slice_of(event: Event, number: int, arm: int) -> tuple[Slice, float]:
    """Return the turn of an arm, and the CPU time that its load took in ns. Its number is that in the job.

    Raises: ValueError if the event is of another turn, or of none that could have been.
    """
    told = event.get("arm")
    if type(told) is not int or told != number:
        raise ValueError(f"it tells of a turn of arm {str(told)[:_SHOWN]!a} when arm {number} had one")
    start_ns, end_ns, drained_ns = (_count(event, name) for name in ("start_ns", "end_ns", "drained_ns"))
    if not start_ns <= end_ns <= drained_ns:
        raise ValueError("it tells of a turn that ends before it begins")
    servers_ns = event.get("server_cpu_ns")
    if not isinstance(servers_ns, list) or not all(_is_integer(one) for one in servers_ns):
        raise ValueError("it tells of a turn whose server_cpu_ns are no numbers")
    return Slice(arm, start_ns, end_ns, tuple(servers_ns), drained_ns), float(_count(event, "client_cpu_ns"))


def _count(event: Event, name: str) -> int:
    value: object = event.get(name)
    if not isinstance(value, int) or not _is_integer(value) or value < 0:
        raise ValueError(f"it tells of a turn whose {name} is no count")
    return value


def _is_integer(value: object) -> bool:
    """Whether it is a number that the store can keep; True and 1.0 are none."""
    return type(value) is int and -_LARGEST <= value < _LARGEST
