"""Profile a running server's own traffic: nothing is loaded, and nothing is changed.

Transactions are those that the server counts, and their time is that of its sessions in transactions. Where
the server is proven to run on this host, CPU time and time in the run queue are those of its processes;
looks at sessions divide the rest: on a busy machine, a look finds sessions waiting that are about to run.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from pgdyno.app.arenas.attached_server import postmaster_of
from pgdyno.app.local_machine import online_cpus, workspace
from pgdyno.app.profiling.layouts import sampled_layout
from pgdyno.app.profiling.recordings import Recordings, open_recordings
from pgdyno.app.profiling.results import within
from pgdyno.host.machine.cpu_times import read_host_cpu
from pgdyno.model import numbers
from pgdyno.model.errors import MeasurementError, ServerError, UsageError
from pgdyno.model.facts import Fact, Unknown, unknown
from pgdyno.model.hosts.host_cpu import HostCpu
from pgdyno.model.ports import Progress
from pgdyno.model.profiles.profile import TransactionProfile
from pgdyno.profiling.cycles import Counters, Cycle, Sampled, Window
from pgdyno.profiling.stacks import Stack
from pgdyno.profiling.summary import Profiled, sum_up
from pgdyno.server.connection.connection import Connection, connect
from pgdyno.server.inspection.inspection import identify_backend
from pgdyno.server.process.account import one_off_account
from pgdyno.server.process.processes import children, cpu_ns, queue_ns
from pgdyno.server.sampling.session_looks import (
    SessionLooks,
    look_at_sessions,
    may_see_sessions,
    read_session_pids,
    read_session_totals,
)

_WINDOW_S = 10.0
_LEAST_S, _MOST_S = 8.0, 1800.0  # two windows: sessions report once a second; 3 GB of recordings
_MOST_BEGUN = 0.5  # of the sessions that are seen; of servers with more, too much is not
_LOOK_EVERY_S = 0.2
_SAMPLES_PER_S = 200
_NAME = "its own traffic"
_BETWEEN = "between statements of a transaction"
_OURS = 1  # a transaction of ours in a window besides its looks: the one that counts


@dataclass(frozen=True)
class _Watched:
    """A window of a server's traffic. ``sessions`` are clients' processes, by this host's numbers.

    ``in_transactions_s`` is the time of sessions in transactions as the server counts it; None: it does not.
    ``begun`` sessions are those that were opened meanwhile.
    """

    looks: SessionLooks
    transactions: int
    in_transactions_s: float | None
    added: Counters | None
    monotonic_ns: tuple[int, int]
    sessions: frozenset[int]
    begun: int

    @property
    def seconds(self) -> float:
        return (self.monotonic_ns[1] - self.monotonic_ns[0]) / 1e9

    @property
    def mean_sessions(self) -> float:
        """The mean number of sessions in transactions: as the server counts it, else by looks.

        It counts from when a statement has been read. Of transactions of one short statement, that leaves out
        most of what the session does for them: it is at least the time in which sessions run or could run.
        """
        if self.in_transactions_s is None:
            counted = self.looks.in_transactions / self.looks.looks
        else:
            counted = self.in_transactions_s / self.seconds
        return max(counted, self.could_run_s / self.seconds)

    @property
    def could_run_s(self) -> float:
        """The time in which sessions ran, or could have; 0 where their processes are not seen."""
        if self.added is None:
            return 0.0
        return (self.added.session_cpu + self.added.session_queue + self.added.stolen) / 1e9

    def require_traffic(self) -> None:
        """Raise MeasurementError if there is nothing to see."""
        if self.transactions <= 0 or self.mean_sessions <= 0:
            raise MeasurementError(
                f"hardly a transaction was seen within {self.seconds:.0f} s",
                detail="with track_counts or track_activities off, the server shows none",
                hint="profile the server while it works",
            )

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
        """Return mean numbers of sessions that wait: together no more than neither run nor want to."""
        waiting = (self.looks.in_transactions - self.looks.working) / self.looks.looks
        share = 1.0
        if self.added is not None and waiting:
            share = min(1.0, (self.mean_sessions - self.could_run_s / self.seconds) / waiting)
        return {event: share * sessions / self.looks.looks for event, sessions in sums.items()}


@dataclass(frozen=True)
class _Moment:
    """CPU time and time in a queue of each process of a server, in ns, and the times of this host's CPUs."""

    processes: Mapping[int, tuple[int, int]]
    host: HostCpu

    @classmethod
    def of(cls, postmaster: int, own: int) -> _Moment:
        """Return them as they are now, without our own session."""
        pids = {postmaster, *children(postmaster)} - {own}
        read = {pid: (cpu_ns(pid), queue_ns(pid)) for pid in pids}
        alive = {pid: (cpu, queue) for pid, (cpu, queue) in read.items() if cpu is not None}
        return cls(alive, read_host_cpu(online_cpus()))

    def since(self, before: _Moment, sessions: Collection[int]) -> Counters:
        """Return the increments of the processes that were there at both times."""
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
            # of all CPUs, whoever used them: the sessions' share of it
            stolen=int(stolen * min(1.0, session_cpu / busy)) if busy > 0 else 0,
            busy=int(busy),
        )


@dataclass(frozen=True)
class _Traffic:
    """A server whose traffic is watched. ``postmaster`` None: its processes are not seen.

    ``own`` is the process of our session.
    """

    connection: Connection
    postmaster: int | None
    own: int

    def watch(self, window_s: float, tell: Callable[[float], None]) -> _Watched:
        """Watch for a window."""
        before, sessions = self._moment(), self._sessions()
        totals, began_ns = read_session_totals(self.connection), time.monotonic_ns()
        looks = look_at_sessions(self.connection, window_s, _LOOK_EVERY_S, tell)
        ended_ns, ended = time.monotonic_ns(), read_session_totals(self.connection)
        left, after = self._sessions(), self._moment()
        all_seen = sessions | left
        begun = 0 if ended.sessions is None or totals.sessions is None else ended.sessions - totals.sessions
        is_steady = begun <= _MOST_BEGUN * len(all_seen)
        in_transactions_s = None
        if ended.in_transactions_s is not None and totals.in_transactions_s is not None:
            in_transactions_s = ended.in_transactions_s - totals.in_transactions_s
        return _Watched(
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

    def _sessions(self) -> frozenset[int]:
        """Return clients' processes, as far as they are the postmaster's."""
        if self.postmaster is None:
            return frozenset()
        return read_session_pids(self.connection) & frozenset(children(self.postmaster))


def profile_attached(dsn: str, duration_s: float, progress: Progress) -> TransactionProfile:
    """Profile the traffic of a running server for about a time.

    Raises: UsageError for another time than it can be watched for; MeasurementError if it does nothing;
    ServerError if the role may not see the sessions of others; ConnectionFailedError.
    """
    if not _LEAST_S <= duration_s <= _MOST_S:
        raise UsageError(
            f"a server is not watched for {duration_s:g} s", hint=f"--for {_LEAST_S:g}s to {_MOST_S / 60:g}m"
        )
    windows = max(2, round(duration_s / _WINDOW_S))
    window_s = duration_s / windows
    with closing(connect(dsn)) as connection, workspace().scratch() as scratch:
        if not may_see_sessions(connection):
            raise ServerError(
                "the role may not see the sessions of others",
                hint="GRANT pg_read_all_stats TO the role, or connect as a superuser",
            )
        own = identify_backend(connection).pid
        postmaster = _on_this_host(postmaster_of(connection), own)
        traffic = _Traffic(connection, postmaster.or_none(), own)
        spent_s, began_s = _own_cpu_s(postmaster, own), time.monotonic()
        with _opened_recordings(scratch, postmaster) as recordings:
            progress.step(f"watching the traffic for {duration_s:.0f} s")
            watched = []
            for window in range(windows):
                tell = partial(_tell, progress, window * window_s, duration_s)
                with recordings.sampling():
                    watched.append(traffic.watch(window_s, tell))
                watched[-1].require_traffic()
            recordings.end()
            program = _program(postmaster)
        share = (_own_cpu_s(postmaster, own) - spent_s) / (time.monotonic() - began_s)
        progress.step("reading what was recorded")
        stacks = within(recordings.stacks(), watched)
        cycles = [one.cycle(its) for one, its in zip(watched, stacks, strict=True)]
        remarks = (*recordings.remarks, *_remarks(watched, postmaster), _cost(share))
        label = f"port={connection.info.port} dbname={connection.info.dbname}"
    sessions = sum(one.mean_sessions for one in watched) / len(watched)
    found = sum_up(Profiled(label, _NAME, sessions, len(online_cpus())), cycles, (), remarks)
    layout = None if program is None else sampled_layout(program, cycles)
    return replace(found, layouts=(layout,) if layout else ())


def _program(postmaster: Fact[int]) -> Path | None:
    """Return the file of the server's program, if its processes are seen and we may look."""
    if isinstance(postmaster.value, Unknown):
        return None
    try:
        return Path(f"/proc/{postmaster.value}/exe").readlink()
    except OSError:
        return None


def _on_this_host(postmaster: Fact[int], own: int) -> Fact[int]:
    """Return the postmaster, if the server numbers its processes as this host does."""
    if isinstance(postmaster.value, Unknown) or own in children(postmaster.value):
        return postmaster
    return unknown("it runs in a container, which numbers processes otherwise", postmaster.source)


def _tell(progress: Progress, before_s: float, whole_s: float, passed_s: float) -> None:
    progress.advance(before_s + passed_s, whole_s)


def _own_cpu_s(postmaster: Fact[int], own: int) -> float:
    """Return the CPU time of this process, of its children that have ended, and of our session."""
    ours = sum(os.times()[:4])
    return ours + (cpu_ns(own) or 0) / 1e9 if postmaster.is_known else ours


@contextmanager
def _opened_recordings(scratch: Path, postmaster: Fact[int]) -> Iterator[Recordings]:
    if isinstance(postmaster.value, Unknown):
        yield Recordings(scratch, one_off_account())
        return
    pids = (postmaster.value, *children(postmaster.value))
    with open_recordings(scratch, pids, _SAMPLES_PER_S, is_traced=False) as opened:
        yield opened


def _remarks(watched: Sequence[_Watched], postmaster: Fact[int]) -> Iterator[str]:
    if isinstance(postmaster.value, Unknown):
        yield f"processes are not seen: the server is not proven to run here: {postmaster.value.reason}"
    elif any(one.added is None for one in watched):
        begun = sum(one.begun for one in watched)
        yield f"{begun:,} sessions began meanwhile: CPU time is not shown, that of ended ones is not known"
    looks = sum(one.looks.looks for one in watched)
    yield (
        "transactions and the time of sessions in them are those that the server counts, of all databases; "
        f"{looks} looks at sessions say what they wait for"
    )


def _cost(share: float) -> str:
    return f"while it watched, pgdyno took {numbers.share(share, 1)} of a CPU, its session included"
