"""Turns with a switch to the arm's machine settings before each.

So machine-wide settings can be compared in short turns, too, provided that a change takes effect immediately
and leaves no after-effects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pgdyno.load.turns import Servers, Turns
from pgdyno.model.experiments.experiment import HostLog, Slice


@dataclass(frozen=True)
class SwitchedTurns:
    """Turns of any kind, and the action before each turn, by arm."""

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
