"""Turns with a switch to the arm's machine settings before each.

What the whole machine has one value of can so be compared as closely in time as anything else, where a value
counts at once and leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pgdyno.load.turns import Servers, Turns
from pgdyno.model.experiments.experiment import HostLog, Slice


@dataclass(frozen=True)
class SwitchedTurns:
    """Turns of any kind, and the action before each arm's turns."""

    turns: Turns
    begin: Sequence[Callable[[], None]]

    def warm_up(self, arm: int, duration_s: float) -> None:
        """Switch, then let the arm's load run for the first time."""
        self.begin[arm]()
        self.turns.warm_up(arm, duration_s)

    def take(
        self, order: Sequence[int], *, slice_s: float, head_s: float, servers: Servers
    ) -> Iterator[Slice]:
        """Switch before every turn. All arms are at rest then."""
        for arm in order:
            self.begin[arm]()
            yield from self.turns.take([arm], slice_s=slice_s, head_s=head_s, servers=servers)

    def client_cpu_us(self, arm: int) -> tuple[float, ...] | None:
        """Return the client CPU time of issuing the arm's load, without switching."""
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
