"""Turns of pgdyno-driver: one process, connected to all arms.

It lets transactions end before the next turn.

So no transaction straddles a turn, latencies need no correction, and the server of an arm at rest has no
transaction open. All arms are driven by the same code in the same process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.generators.driver_process import DriverProcess
from pgdyno.generators.given_up import require_few
from pgdyno.generators.transaction_log import TransactionLog
from pgdyno.generators.turns import Servers
from pgdyno.model.experiments.experiment import Slice

_DRAIN_TIMEOUT_S = 90.0  # above the driver's own limit of 60 s, so that its message is seen

_TIMES = ("start_ns", "end_ns", "drained_ns")


@dataclass
class DrainedTurns:
    """A driver for all arms. It is started by the first warm-up.

    ``order`` has the arms as the job names them: the driver connects them, and looks at them, in that order.
    ``when_ended`` is called when the load of all has ended. A driver on another host cannot read the CPU
    time of servers here: it is read here when a turn is told to have ended, half a round trip later. The next
    turn has begun by then, so that each arm's first moments count as the other's; over turns that cancels.
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
        for _ in self._take([arm], slice_s=duration_s, head_s=0.0, servers=None):
            pass

    def take(
        self, order: Sequence[int], *, slice_s: float, head_s: float, servers: Servers
    ) -> Iterator[Slice]:
        """Have the driver give turns; it reads the servers' CPU time itself, at the edges of each."""
        return self._take(order, slice_s=slice_s, head_s=head_s, servers=servers)

    def client_cpu_us(self, arm: int) -> float | None:
        """Return the CPU time of the driver during the arm's turns."""
        return self._client_cpu_us.get(arm)

    def pids(self, _arm: int) -> tuple[int, ...]:
        """Return the driver, which issues the loads of all arms."""
        return self.driver.pids

    def end(self) -> None:
        """Stop the driver and wait for its last word.

        Raises: GeneratorFailedError, also if too many transactions were given up; what ``when_ended`` raises.
        """
        require_few(self.driver.stop())
        self.when_ended()

    def log(self, arm: int) -> bytes:
        """Return the transactions of an arm."""
        return TransactionLog(self.log_prefixes[arm]).read_new()

    def close(self) -> None:
        """Kill the driver if it still runs."""
        self.driver.close()

    def _take(
        self, order: Sequence[int], *, slice_s: float, head_s: float, servers: Servers | None
    ) -> Iterator[Slice]:
        clocks = servers if self.driver.distance else None
        pids = servers.pids if servers and not self.driver.distance else ()
        read_ns = clocks.read_cpu_ns() if clocks else ()
        self.driver.send(
            {
                "do": "turns",
                "order": [self.order.index(arm) for arm in order],
                "slice_s": slice_s,
                "head_s": head_s,
                "pids": [list(of_arm) for of_arm in pids],
            }
        )
        while (event := self.driver.receive(slice_s + _DRAIN_TIMEOUT_S))["event"] != "turns-ended":
            self.driver.expect("slice", event)
            arm = self.order[int(event["arm"])]
            cpu_us = event["client_cpu_ns"] / 1000
            self._client_cpu_us[arm] = self._client_cpu_us.get(arm, 0.0) + cpu_us
            start_ns, end_ns, drained_ns = (event[name] for name in _TIMES)
            server_cpu_ns = tuple(event["server_cpu_ns"])
            if clocks:
                earlier_ns, read_ns = read_ns, clocks.read_cpu_ns()
                server_cpu_ns = tuple(
                    after - before for before, after in zip(earlier_ns, read_ns, strict=True)
                )
            yield Slice(arm, start_ns, end_ns, server_cpu_ns, drained_ns)
