"""Turns of pgdyno-driver on load hosts: one process on each, connected to all arms.

No driver there can read the CPU time of servers here. So turns are given one by one: all servers rest
before each and after it, when they are read here. What they used in between, while the turn's head passed,
its transactions ended, and words were on the way, is taken to have been used evenly: of that, the counted
part's share by time is the slice's.

Each host has a clock of its own. All are told at once to begin after the same time, and the turn is as long
for each: what a host counts from the beginning of its turn is of the same part of it as what another does.
So no two clocks are compared. By ours the turn begins at the earliest time at which a host could begin it;
then all rest, by ours, before the next one begins. How far apart hosts began is bounded by how long words
took: each host was told before it waited, and its words came back after its turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.load.drained import await_end, told_slice, turns_command
from pgdyno.load.driver_process import ENDED, DriverJob
from pgdyno.load.transaction_log import TransactionLog
from pgdyno.load.turns import Servers
from pgdyno.model.experiments.experiment import HostLog, Slice

_US = 1000  # logs have whole microseconds


@dataclass(frozen=True)
class HostTurn:
    """A host's turn by its own clock. ``heard_ns`` is when its words came, by ours."""

    turn: Slice
    heard_ns: int

    @property
    def occupied_ns(self) -> int:
        """How long transactions were under way."""
        return (self.turn.drained_ns or self.turn.end_ns) - self.turn.start_ns


@dataclass
class HostsTurns:
    """The drivers of all hosts, started by the first warm-up. ``order`` is as of ``DrainedTurns``.

    They wait for ``delay_s`` before each turn, so that words reach all while nobody is at work.
    """

    hosts: Sequence[DriverJob]
    order: Sequence[int]
    delay_s: float = 0.0
    when_ended: Callable[[], None] = lambda: None
    now_ns: Callable[[], int] = time.monotonic_ns
    epoch_ns: int = field(default_factory=lambda: time.time_ns() - time.monotonic_ns())
    """Makes that clock one of the epoch, which nobody sets."""
    _client_cpu_us: dict[int, list[float]] = field(default_factory=dict, init=False)
    _begun_ns: list[tuple[int, ...]] = field(default_factory=list, init=False)  # turns, by us and each host

    def warm_up(self, arm: int, duration_s: float) -> None:
        """Give the arm one long turn; the first one starts the drivers and connects all arms."""
        if not self._begun_ns:
            with self._lost_host_named():
                self._start()
        self._turn(arm, duration_s, 0.0)

    def take(
        self, order: Sequence[int], *, slice_s: float, head_s: float, servers: Servers
    ) -> Iterator[Slice]:
        """Have the drivers give one turn at a time, and read the servers here while all rest."""
        for arm in order:
            began_ns, before_ns = self.now_ns(), servers.read_cpu_ns()
            taken = self._turn(arm, slice_s, head_s)
            after_ns, lasted_ns = servers.read_cpu_ns(), self.now_ns() - began_ns
            counted_ns = max(0, taken.end_ns - taken.start_ns - int(head_s * 1e9))
            share = min(1.0, counted_ns / max(1, lasted_ns))
            used_ns = (after - before for before, after in zip(before_ns, after_ns, strict=True))
            yield replace(taken, server_cpu_ns=tuple(int(used * share) for used in used_ns))

    def client_cpu_us(self, arm: int) -> tuple[float, ...] | None:
        """Return the CPU time of each host's driver during the arm's turns."""
        return tuple(self._client_cpu_us[arm]) if arm in self._client_cpu_us else None

    def pids(self, _arm: int) -> tuple[int, ...]:
        """Return no process: none issues load here."""
        return ()

    def end(self) -> None:
        """Stop the drivers, one after another, and fetch their logs.

        Raises: GeneratorFailedError; what ``when_ended`` raises.
        """
        for host in self.hosts:
            host.process.stop()
        self.when_ended()

    def logs(self, arm: int) -> Sequence[HostLog]:
        """Return the transactions of an arm, by host."""
        ours, *theirs = zip(*self._begun_ns, strict=True)
        return [
            HostLog(TransactionLog(host.log_prefixes[arm]).read_new(), moves(own, ours))
            for host, own in zip(self.hosts, theirs, strict=True)
        ]

    def close(self) -> None:
        """Kill the drivers that still run."""
        for host in self.hosts:
            host.process.close()

    def _start(self) -> None:
        """Reach all hosts at the same time, and let all connect at the same time."""
        for host in self.hosts:
            host.process.begin()
        for host in self.hosts:
            host.process.give(host.job)
        for host in self.hosts:
            host.process.await_ready()

    def _turn(self, arm: int, slice_s: float, head_s: float) -> Slice:
        """Tell all hosts of a turn at once, and wait until all rest again."""
        number, used_us = self.order.index(arm), self._client_cpu_us.setdefault(arm, [0.0] * len(self.hosts))
        command = turns_command([number], slice_s, head_s, delay_s=self.delay_s)
        told, earliest_ns = list[HostTurn](), self.epoch_ns + self.now_ns() + int(self.delay_s * 1e9)
        with self._lost_host_named():
            for host in self.hosts:
                host.process.send(command)
            for index, host in enumerate(self.hosts):
                taken, client_cpu_ns = told_slice(host.process, number, arm, slice_s + self.delay_s)
                told.append(HostTurn(taken, self.epoch_ns + host.process.heard_ns))
                used_us[index] += client_cpu_ns / 1000
                await_end(host.process, slice_s)
        self._begun_ns.append((earliest_ns, *(one.turn.start_ns for one in told)))
        try:
            return joined_turn(told, earliest_ns)
        except ValueError as error:
            raise self.hosts[0].process.failure(str(error)) from None

    @contextmanager
    def _lost_host_named(self) -> Iterator[None]:
        """Blame the host that has gone: transactions of others may have waited for its locks, and failed."""
        try:
            yield
        except GeneratorFailedError as error:
            gone = next((host.process for host in self.hosts if host.process.is_gone), None)
            if gone is None:
                raise
            raise gone.lost(ENDED) from error


def joined_turn(turns: Sequence[HostTurn], earliest_ns: int) -> Slice:
    """Return a turn of all hosts by our clock, which is drained when the last host has rested.

    Raises: ValueError if turns are not equally long.
    """
    first, *others = (one.turn.end_ns - one.turn.start_ns for one in turns)
    if any(length != first for length in others):
        raise ValueError("it tells of a turn that is not as long as that of other hosts")
    return replace(
        turns[0].turn,
        start_ns=earliest_ns,
        end_ns=earliest_ns + first,
        drained_ns=earliest_ns + max(one.occupied_ns for one in turns),
        apart_ns=max(0, *(one.heard_ns - earliest_ns - one.occupied_ns for one in turns)) if others else None,
    )


def moves(theirs: Sequence[int], ours: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return how a host's clock becomes ours, turn by turn, from when turns began by both."""
    return tuple(
        (began // _US * _US, (at // _US - began // _US) * _US) for began, at in zip(theirs, ours, strict=True)
    )
