"""Turns of pgdyno-driver on load hosts: one process on each host, connected to all arms.

A driver on another host cannot read the local servers' CPU time. So turns run one by one, and the servers'
CPU time is read here before and after each turn, when all servers rest. The CPU time in between, which
includes the turn's head, its draining and the message delays, is assumed to be used evenly: the slice gets
the share of its counted part by time.

Each host has its own clock, and clocks are never compared. All hosts get the command at once, wait for the
same delay, and run turns of equal length. So times from the start of a host's turn refer to the same part of
the turn on every host. On the local clock, the turn starts at the earliest time at which a host could start
it, and all hosts rest before the next one starts. The difference between the hosts' starts is bounded by the
message delays: each host received the command before its delay, and its report arrived after its turn.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.load.driver_process import ENDED, DriverJob
from pgdyno.load.driver_turns import await_end, receive_slice, turns_command
from pgdyno.load.transaction_log import TransactionLog
from pgdyno.load.turns import Servers
from pgdyno.model.experiments.slices import HostLog, Slice

_US = 1000  # logs have whole microseconds


@dataclass(frozen=True)
class HostTurn:
    """A host's turn on its own clock. ``heard_ns`` is the arrival time of its report on the local clock."""

    turn: Slice
    heard_ns: int

    @property
    def occupied_ns(self) -> int:
        """The time from the turn's start until its last transaction ended."""
        return (self.turn.drained_ns or self.turn.end_ns) - self.turn.start_ns


@dataclass
class HostsTurns:
    """The drivers of all hosts, started by the first warm-up. ``order`` is as in ``DrainedTurns``.

    They wait for ``delay_s`` before each turn, so that the command reaches all hosts before any load starts.
    """

    hosts: Sequence[DriverJob]
    order: Sequence[int]
    delay_s: float = 0.0
    when_ended: Callable[[], None] = lambda: None
    now_ns: Callable[[], int] = time.monotonic_ns
    epoch_ns: int = field(default_factory=lambda: time.time_ns() - time.monotonic_ns())
    """Offset that converts the monotonic clock to epoch time, unaffected by later clock changes."""
    _client_cpu_us: dict[int, list[float]] = field(default_factory=dict, init=False)
    _begun_ns: list[tuple[int, ...]] = field(default_factory=list, init=False)
    """The start of each turn: on the local clock, then on each host's."""

    def warm_up(self, arm: int, duration_s: float) -> None:
        """Run one long turn of the arm; the first call starts the drivers and connects all arms."""
        if not self._begun_ns:
            with self._lost_host_named():
                self._start()
        self._turn(arm, duration_s, 0.0)

    def take(
        self, order: Sequence[int], *, slice_s: float, head_s: float, servers: Servers
    ) -> Iterator[Slice]:
        """Run one turn at a time, and read the servers' CPU time locally while all rest."""
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
        """Return an empty tuple: no local process issues load."""
        return ()

    def end(self) -> None:
        """Stop the drivers, one after another, and fetch their logs.

        Raises: GeneratorFailedError; as ``when_ended``.
        """
        for host in self.hosts:
            host.process.stop()
        self.when_ended()

    def logs(self, arm: int) -> Sequence[HostLog]:
        """Return the transactions of an arm, by host."""
        local, *remote = zip(*self._begun_ns, strict=True)
        return [
            HostLog(TransactionLog(host.log_prefixes[arm]).read_new(), moves(own, local))
            for host, own in zip(self.hosts, remote, strict=True)
        ]

    def close(self) -> None:
        """Kill the drivers that still run."""
        for host in self.hosts:
            host.process.close()

    def _start(self) -> None:
        """Start the drivers on all hosts in parallel, and let them connect in parallel."""
        for host in self.hosts:
            host.process.begin()
        for host in self.hosts:
            host.process.give(host.job)
        for host in self.hosts:
            host.process.await_ready()

    def _turn(self, arm: int, slice_s: float, head_s: float) -> Slice:
        """Send a turn's command to all hosts at once, and wait until all rest again."""
        number, used_us = self.order.index(arm), self._client_cpu_us.setdefault(arm, [0.0] * len(self.hosts))
        command = turns_command([number], slice_s, head_s, delay_s=self.delay_s)
        turns, earliest_ns = list[HostTurn](), self.epoch_ns + self.now_ns() + int(self.delay_s * 1e9)
        with self._lost_host_named():
            for host in self.hosts:
                host.process.send(command)
            for index, host in enumerate(self.hosts):
                taken, client_cpu_ns = receive_slice(host.process, number, arm, slice_s + self.delay_s)
                turns.append(HostTurn(taken, self.epoch_ns + host.process.heard_ns))
                used_us[index] += client_cpu_ns / 1000
                await_end(host.process, slice_s)
        self._begun_ns.append((earliest_ns, *(one.turn.start_ns for one in turns)))
        try:
            return joined_turn(turns, earliest_ns)
        except ValueError as error:
            raise self.hosts[0].process.failure(str(error)) from None

    @contextmanager
    def _lost_host_named(self) -> Iterator[None]:
        """Raise errors as the loss of a host if one is gone.

        Transactions of other hosts may have failed because they waited for its locks.
        """
        try:
            yield
        except GeneratorFailedError as error:
            gone = next((host.process for host in self.hosts if host.process.is_gone), None)
            if gone is None:
                raise
            raise gone.lost(ENDED) from error


def joined_turn(turns: Sequence[HostTurn], earliest_ns: int) -> Slice:
    """Return a turn of all hosts on the local clock; it is drained when the last host rests.

    Raises: ValueError if the turns have different lengths.
    """
    first, *others = (one.turn.end_ns - one.turn.start_ns for one in turns)
    if any(length != first for length in others):
        raise ValueError("it reports a turn with a different length than other hosts")
    return replace(
        turns[0].turn,
        start_ns=earliest_ns,
        end_ns=earliest_ns + first,
        drained_ns=earliest_ns + max(one.occupied_ns for one in turns),
        apart_ns=max(0, *(one.heard_ns - earliest_ns - one.occupied_ns for one in turns)) if others else None,
    )


def moves(theirs: Sequence[int], ours: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Return the conversion of a host's clock to the local one, per turn, from the turns' starts on both.

    Each item is a start on the host's clock in ns, and the offset in ns to add from there on, in whole
    microseconds.
    """
    return tuple(
        (began // _US * _US, (at // _US - began // _US) * _US) for began, at in zip(theirs, ours, strict=True)
    )
