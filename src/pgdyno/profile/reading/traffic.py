"""Windows of a running server's own traffic: its statistics, samples of its sessions, and CPU time."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from pgdyno.base.errors import MeasurementError
from pgdyno.host.host import HostCpu
from pgdyno.host.machine.cpu_times import read_host_cpu
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.process.local_machine import online_cpus
from pgdyno.postgres.process.processes import children, cpu_ns, queue_ns
from pgdyno.postgres.sampling.session_samples import (
    SessionSamples,
    read_session_pids,
    read_session_totals,
    sample_sessions,
)
from pgdyno.profile.cycles import Counters, Cycle, Sampled, Window
from pgdyno.profile.parts import uncounted_share
from pgdyno.profile.stacks import Stack

_LOOK_EVERY_S = 0.2
_MOST_BEGUN = 0.5  # as a share of the visible sessions; with more, too much CPU time is missed
_BETWEEN = "between statements of a transaction"
_OURS = 1  # the profile's own transaction per window in addition to its samples: it reads the counters


@dataclass(frozen=True)
class TrafficWindow:
    """A window of a server's traffic. ``sessions`` are the backends' process IDs on this host.

    ``in_transactions_s`` is the sessions' time in transactions, as counted by the server; None if it does not
    count that. ``begun`` is the number of sessions opened in the window. ``uncounted_s`` is the CPU time in
    messages that the server does not count, from samples; None without such samples.
    """

    looks: SessionSamples
    transactions: int
    in_transactions_s: float | None
    added: Counters | None
    monotonic_ns: tuple[int, int]
    sessions: frozenset[int]
    begun: int
    uncounted_s: float | None = None

    @property
    def seconds(self) -> float:
        """Length of the window in s."""
        return (self.monotonic_ns[1] - self.monotonic_ns[0]) / 1e9

    @property
    def mean_sessions(self) -> float:
        """The mean number of sessions in transactions: as counted by the server, else from samples.

        The server counts from the moment when it has read a statement. For transactions of one short
        statement, this omits most of the session's work; so the time in which sessions run or are runnable is
        the lower bound.
        """
        if self.in_transactions_s is None:
            counted = self.looks.in_transactions / self.looks.looks
        else:
            counted = (self.in_transactions_s + (self.uncounted_s or 0.0)) / self.seconds
        return max(counted, self.could_run_s / self.seconds)

    @property
    def could_run_s(self) -> float:
        """The time in which sessions ran or were runnable, in s; 0 if their processes are not visible."""
        if self.added is None:
            return 0.0
        return (self.added.session_cpu + self.added.session_queue + self.added.stolen) / 1e9

    def require_traffic(self) -> None:
        """Raise MeasurementError if the window has no transactions."""
        if self.transactions <= 0 or self.mean_sessions <= 0:
            raise MeasurementError(
                f"almost no transactions within {self.seconds:.0f} s",
                detail="with track_counts or track_activities off, the server reports none",
                hint="profile the server while it is under load",
            )

    def sampled(self, stacks: Sequence[Stack]) -> TrafficWindow:
        """Return the window with ``uncounted_s`` set from samples."""
        share = uncounted_share([stack.frames for stack in stacks if stack.pid in self.sessions])
        if self.added is None or share is None:
            return self
        return replace(self, uncounted_s=share * self.added.session_cpu / 1e9)

    def cycle(self, stacks: Sequence[Stack]) -> Cycle:
        """Return the window as a cycle."""
        latency_us = 1e6 * self.mean_sessions * self.seconds / self.transactions
        return Cycle(
            Window(self.seconds, self.transactions, latency_us, self.added),
            sampled=Sampled.of(stacks, self.sessions),
            waits=self._mean(self.looks.waits),
            client_waits=self._mean({_BETWEEN: self.looks.between, **self.looks.client_waits}),
            working=self.looks.working / self.looks.looks,
        )

    def _mean(self, sums: Mapping[str, int]) -> dict[str, float]:
        """Return mean numbers of waiting sessions; their sum excludes sessions that run or are runnable."""
        waiting = (self.looks.in_transactions - self.looks.working) / self.looks.looks
        share = 1.0
        if self.added is not None and waiting:
            share = min(1.0, (self.mean_sessions - self.could_run_s / self.seconds) / waiting)
        return {event: share * sessions / self.looks.looks for event, sessions in sums.items()}


@dataclass(frozen=True)
class _Moment:
    """CPU time and run queue time of each server process, in ns, and the times of this host's CPUs."""

    processes: Mapping[int, tuple[int, int]]
    host: HostCpu

    @classmethod
    def of(cls, postmaster: int, own: int) -> _Moment:
        """Return the present values, without the profile's own session."""
        pids = {postmaster, *children(postmaster)} - {own}
        read = {pid: (cpu_ns(pid), queue_ns(pid)) for pid in pids}
        alive = {pid: (cpu, queue) for pid, (cpu, queue) in read.items() if cpu is not None}
        return cls(alive, read_host_cpu(online_cpus()))

    def since(self, before: _Moment, sessions: Collection[int]) -> Counters:
        """Return the increments of the processes present at both times."""
        both = self.processes.keys() & before.processes.keys()
        cpu = {pid: self.processes[pid][0] - before.processes[pid][0] for pid in both}
        queue = {pid: self.processes[pid][1] - before.processes[pid][1] for pid in both}
        session_cpu = sum(ns for pid, ns in cpu.items() if pid in sessions)
        busy = (self.host.busy_s - before.host.busy_s) * 1e9
        stolen = (self.host.steal_s - before.host.steal_s) * 1e9
        return Counters(
            session_cpu=session_cpu,
            session_queue=sum(ns for pid, ns in queue.items() if pid in sessions),
            background_cpu=sum(ns for pid, ns in cpu.items() if pid not in sessions),
            client_cpu=0,
            client_queue=0,
            # the sessions' share of the steal time of all CPUs
            stolen=int(stolen * min(1.0, session_cpu / busy)) if busy > 0 else 0,
            busy=int(busy),
        )


@dataclass(frozen=True)
class WatchedServer:
    """A server with traffic to watch. ``postmaster`` is None if its processes are not visible.

    ``own`` is the process of the profile's session.
    """

    connection: Connection
    postmaster: int | None
    own: int

    def watch(self, window_s: float, report: Callable[[float], None]) -> TrafficWindow:
        """Watch for one window; ``report`` receives the seconds passed."""
        before, sessions = self._moment(), self.sessions()
        totals, began_ns = read_session_totals(self.connection), time.monotonic_ns()
        looks = sample_sessions(self.connection, window_s, _LOOK_EVERY_S, report)
        ended_ns, ended = time.monotonic_ns(), read_session_totals(self.connection)
        left, after = self.sessions(), self._moment()
        all_seen = sessions | left
        begun = 0 if ended.sessions is None or totals.sessions is None else ended.sessions - totals.sessions
        is_steady = begun <= _MOST_BEGUN * len(all_seen)
        in_transactions_s = None
        if ended.in_transactions_s is not None and totals.in_transactions_s is not None:
            in_transactions_s = ended.in_transactions_s - totals.in_transactions_s
        return TrafficWindow(
            looks,
            ended.transactions - totals.transactions - looks.looks - _OURS,
            in_transactions_s,
            after.since(before, all_seen) if before and after and is_steady else None,
            (began_ns, ended_ns),
            all_seen,
            begun,
        )

    def _moment(self) -> _Moment | None:
        return None if self.postmaster is None else _Moment.of(self.postmaster, self.own)

    def sessions(self) -> frozenset[int]:
        """Return the backends' processes that are children of the postmaster; empty if not visible."""
        if self.postmaster is None:
            return frozenset()
        return read_session_pids(self.connection) & frozenset(children(self.postmaster))
