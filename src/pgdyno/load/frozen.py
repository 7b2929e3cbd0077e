"""Turns of independent generator programs: all but one are frozen by signals."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgdyno.load.process import LoadProcess, wait_until_connected
from pgdyno.load.turns import Servers
from pgdyno.model.experiments.slices import HostLog, Slice

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
