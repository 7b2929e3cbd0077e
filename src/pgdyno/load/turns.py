"""Taking turns: at any time, at most one arm's load issues transactions.

Noise on shared machines varies over seconds, so arms alternate faster than that. docs/method.md explains the
method and its limits.

turns.py         one program per arm (pgbench, sysbench); all but one are stopped by signals
driver_turns.py  one process for all arms (pgdyno-driver); it drains transactions before the next turn
hosts_turns.py   the same on other hosts, one process on each
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from pgdyno.load.process import LoadProcess, wait_until_connected
from pgdyno.model.experiments.slices import HostLog, Slice


class Servers(Protocol):
    """The arms' server processes during one block."""

    @property
    def pids(self) -> Sequence[Sequence[int]]:
        """The processes of each arm's server."""
        ...

    def read_cpu_ns(self) -> tuple[int, ...]:
        """Return the CPU time used so far by each arm's server, in ns."""
        ...


class Turns(Protocol):
    """The loads of one workload on all arms of a round."""

    def warm_up(self, arm: int, duration_s: float) -> None:
        """Run an arm's load for the first time, and leave it at rest.

        Raises: GeneratorFailedError if it does not start.
        """
        ...

    def take(
        self, order: Sequence[int], *, slice_s: float, head_s: float, servers: Servers
    ) -> Iterator[Slice]:
        """Run turns in this order, and yield every slice as it ends. All arms rest before and after.

        Raises: GeneratorFailedError if a load ended during its turn.
        """
        ...

    def client_cpu_us(self, arm: int) -> tuple[float, ...] | None:
        """Return the CPU time of the arm's load so far on each host, in µs; None if no load runs."""
        ...

    def pids(self, arm: int) -> tuple[int, ...]:
        """Return the local processes that issue an arm's load; empty before its warm-up."""
        ...

    def end(self) -> None:
        """End all loads, so that their logs are complete.

        Raises: GeneratorFailedError if one of them has failed.
        """
        ...

    def logs(self, arm: int) -> Sequence[HostLog]:
        """Return the transactions that an arm has completed, by load host."""
        ...

    def close(self) -> None:
        """End all loads that are still running. Never raises."""
        ...


@dataclass(frozen=True)
class SwitchedTurns:
    """Turns of any kind, and the switch to the arm's machine settings before each turn, by arm.

    So machine-wide settings can be compared in short turns, too, provided that a change takes effect
    immediately and leaves no after-effects.
    """

    turns: Turns
    begin: Sequence[Callable[[], None]]

    def warm_up(self, arm: int, duration_s: float) -> None:
        """Switch, then warm up the arm."""
        self.begin[arm]()
        self.turns.warm_up(arm, duration_s)

    def take(
        self, order: Sequence[int], *, slice_s: float, head_s: float, servers: Servers
    ) -> Iterator[Slice]:
        """Switch before every turn, while all arms rest."""
        for arm in order:
            self.begin[arm]()
            yield from self.turns.take([arm], slice_s=slice_s, head_s=head_s, servers=servers)

    def client_cpu_us(self, arm: int) -> tuple[float, ...] | None:
        """Return the client CPU time of the arm's load, without that of switching."""
        return self.turns.client_cpu_us(arm)

    def pids(self, arm: int) -> tuple[int, ...]:
        """Return the processes that issue an arm's load."""
        return self.turns.pids(arm)

    def end(self) -> None:
        """End all loads."""
        self.turns.end()

    def logs(self, arm: int) -> Sequence[HostLog]:
        """Return the transactions of an arm."""
        return self.turns.logs(arm)

    def close(self) -> None:
        """End all turns that are still running."""
        self.turns.close()


_CONNECT_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class FrozenTurns:
    """One generator process per arm."""

    loads: Sequence[LoadProcess]

    def warm_up(self, arm: int, duration_s: float) -> None:
        """Start the arm's program, wait for its first transaction, and freeze it after ``duration_s``."""
        load = self.loads[arm]
        load.start()
        wait_until_connected(load, timeout_s=_CONNECT_TIMEOUT_S)
        time.sleep(duration_s)
        load.freeze()

    def take(
        self, order: Sequence[int], *, slice_s: float, head_s: float, servers: Servers
    ) -> Iterator[Slice]:
        """Thaw one program after another. CPU time is read after each slice's head and at its end."""
        for arm in order:
            load = self.loads[arm]
            start_ns, begun_s = time.time_ns(), time.monotonic()
            load.thaw()
            try:
                _sleep_until(begun_s + head_s)
                before = servers.read_cpu_ns()
                _sleep_until(begun_s + slice_s)
                end_ns = time.time_ns()
            finally:
                load.freeze()
            after = servers.read_cpu_ns()
            load.require_running()
            yield Slice(arm, start_ns, end_ns, tuple(b - a for a, b in zip(before, after, strict=True)))

    def client_cpu_us(self, arm: int) -> tuple[float, ...] | None:
        """Return the CPU time of all threads of the arm's program."""
        used_us = self.loads[arm].cpu_us()
        return None if used_us is None else (used_us,)

    def pids(self, arm: int) -> tuple[int, ...]:
        """Return the process id of the arm's program."""
        return (self.loads[arm].pid,)

    def end(self) -> None:
        """Stop the programs, in the order of the arms. Raises: GeneratorFailedError if one had failed."""
        for load in self.loads:
            load.stop()
        for load in self.loads:
            load.require_clean_end()

    def logs(self, arm: int) -> Sequence[HostLog]:
        """Return the log output of the arm's program since the last call."""
        return (HostLog(self.loads[arm].transactions.read_new()),)

    def close(self) -> None:
        """Stop every program that still runs."""
        for load in self.loads:
            load.stop()


def _sleep_until(monotonic_s: float) -> None:
    remaining_s = monotonic_s - time.monotonic()
    if remaining_s > 0:
        time.sleep(remaining_s)
