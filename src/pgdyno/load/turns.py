"""Taking turns: at any instant at most one arm's load issues transactions.

Noise on shared machines lives at the scale of seconds, so arms are paired faster than that. See
docs/method.md for why this works and what it cannot see.

frozen.py    one program per arm (pgbench, sysbench); all but one are stopped by signals
drained.py   one process for all arms (pgdyno-driver); it lets transactions end before the next turn
away/        the same on other hosts, one process on each
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from pgdyno.model.experiments.experiment import HostLog, Slice


class Servers(Protocol):
    """The arms' server processes, as they are during one block."""

    @property
    def pids(self) -> Sequence[Sequence[int]]:
        """The processes of each arm's server."""
        ...

    def read_cpu_ns(self) -> tuple[int, ...]:
        """Return the CPU time that each arm's server has used so far."""
        ...


class Turns(Protocol):
    """The loads of one workload on all arms of a round."""

    def warm_up(self, arm: int, duration_s: float) -> None:
        """Let an arm's load run for the first time, and leave it at rest.

        Raises: GeneratorFailedError if it does not come to work.
        """
        ...

    def take(
        self, order: Sequence[int], *, slice_s: float, head_s: float, servers: Servers
    ) -> Iterator[Slice]:
        """Give arms their turns in this order, and yield every slice as it ends. All rest before and after.

        Raises: GeneratorFailedError if a load ended during its turn.
        """
        ...

    def client_cpu_us(self, arm: int) -> tuple[float, ...] | None:
        """Return the CPU time that this arm's load has cost each host so far; None if nothing runs."""
        ...

    def pids(self, arm: int) -> tuple[int, ...]:
        """Return the processes that issue an arm's load; none before it is warmed up."""
        ...

    def end(self) -> None:
        """End all loads, so that their logs are complete.

        Raises: GeneratorFailedError if one of them had failed.
        """
        ...

    def logs(self, arm: int) -> Sequence[HostLog]:
        """Return the transactions that an arm has completed, by host that has issued them."""
        ...

    def close(self) -> None:
        """End all loads that are still running. Never raises."""
        ...
