"""Run the cycles of a profile: separate windows for counting, sampling and tracing arms.

    cycle = for each arm: plain · sampled · statements · traced · hardware counters

Separate windows keep the overhead of one method out of the measurements of another. For each kind of window,
the arms take turns; their order is reversed from cycle to cycle.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

import numpy as np

from pgdyno.base.errors import MeasurementError
from pgdyno.host.machine.cpu_times import read_host_cpu
from pgdyno.load.turns import Turns
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.blocks.transactions import Transactions
from pgdyno.measure.design.isolation import CpuSplit
from pgdyno.measure.statement_counting import StatementCounting
from pgdyno.postgres.process.local_machine import online_cpus
from pgdyno.postgres.process.processes import cpu_ns, queue_ns, threads
from pgdyno.postgres.sampling.activity import ActivitySampling
from pgdyno.postgres.waits import CPU, ActivitySample
from pgdyno.profile.cycles import Counters, Cycle, Sampled, Traced, Window
from pgdyno.profile.hardware import CountedWindow, PerfCounts, of_hardware
from pgdyno.profile.reading.hardware_counting import HardwareCounters
from pgdyno.profile.reading.recordings import Recordings
from pgdyno.profile.records.microarchitecture import Microarchitecture
from pgdyno.profile.scheduling import SchedulingEvent, delays_of
from pgdyno.profile.stacks import Stack

PLAIN_S = 2.0
SAMPLED_S = 3.0
STATEMENTS_S = 1.0
TRACED_S = 0.5
HARDWARE_S = 1.0
_TRACED_CPUS = (
    4  # with more, the traced windows are shorter: each CPU has some ten thousand switches per second
)
CYCLE_S = PLAIN_S + SAMPLED_S + STATEMENTS_S + TRACED_S + HARDWARE_S
_LOOK_EVERY_S = 0.05


@dataclass
class ArmTurns:
    """The turns of one arm, by kind; each list has one turn per cycle, or none if the kind is unavailable."""

    plain: list[Turn] = field(default_factory=list)
    sampled: list[Turn] = field(default_factory=list)
    waits: list[Mapping[str, float]] = field(default_factory=list)
    statement_waits: Counter[tuple[int, str]] = field(default_factory=Counter)  # by query id and event
    statements: list[Turn] = field(default_factory=list)
    traced: list[Turn] = field(default_factory=list)
    hardware: list[tuple[Turn, PerfCounts]] = field(default_factory=list)


@dataclass(frozen=True)
class Profiling:
    """The parts of a profile: arms, their processes, statements and load; perf's recordings and counters."""

    arms: Sequence[Arm]
    processes: Sequence[Processes]
    statements: Sequence[StatementCounting | None]
    turns: Turns
    recordings: Recordings
    hardware: HardwareCounters

    def run(self, cycles: int, report: Callable[[int], None]) -> tuple[ArmTurns, ...]:
        """Run all cycles; ``report`` receives the number done. Raises: GeneratorFailedError, ServerError."""
        taken = tuple(ArmTurns() for _ in self.arms)
        for cycle in range(cycles):
            report(cycle)
            order = range(len(self.arms))
            for kind in (self._plain, self._sampled, self._counted, self._traced, self._in_hardware):
                for arm in order if cycle % 2 == 0 else reversed(order):
                    kind(arm, taken[arm])
        return taken

    def _plain(self, arm: int, taken: ArmTurns) -> None:
        taken.plain.append(self._turn(arm, PLAIN_S))

    def _sampled(self, arm: int, taken: ArmTurns) -> None:
        with closing(self.arms[arm].connect()) as connection, self.recordings.sampling():
            pid = self.arms[arm].postmaster_pid
            with ActivitySampling(connection, pid, _LOOK_EVERY_S, is_by_statement=True) as activity:
                taken.sampled.append(self._turn(arm, SAMPLED_S))
        taken.waits.append(_mean_waiting_sessions(activity.samples))
        for sample in activity.samples:
            for statement, wait, sessions in sample.statements:
                taken.statement_waits[statement, str(wait)] += sessions

    def _counted(self, arm: int, taken: ArmTurns) -> None:
        if (statements := self.statements[arm]) is not None:
            with statements.counted():
                taken.statements.append(self._turn(arm, STATEMENTS_S))

    def _traced(self, arm: int, taken: ArmTurns) -> None:
        if self.recordings.has_trace:
            with self.recordings.tracing():
                taken.traced.append(self._turn(arm, self._traced_s))

    def _in_hardware(self, arm: int, taken: ArmTurns) -> None:
        if self.hardware.are_there:
            sessions = self.processes[arm].sessions
            if window := self.hardware.count(sessions, partial(self._turn, arm, HARDWARE_S)):
                taken.hardware.append(window)

    @property
    def _traced_s(self) -> float:
        return TRACED_S * min(1.0, _TRACED_CPUS / len(online_cpus()))

    def _turn(self, arm: int, seconds: float) -> Turn:
        return take_turn(self.turns, arm, self.processes[arm], seconds)


def _mean_waiting_sessions(samples: Sequence[ActivitySample]) -> Mapping[str, float]:
    seen: Counter[str] = Counter()
    for sample in samples:
        for wait, sessions in sample.waits:
            if wait.type != CPU:
                seen[str(wait)] += sessions
    return {event: sessions / len(samples) for event, sessions in seen.items()}


@dataclass(frozen=True)
class NoServers:
    """An empty set of servers: the profile itself reads CPU time, by process, not the load generator."""

    @property
    def pids(self) -> Sequence[Sequence[int]]:
        """Empty: no process is read."""
        return ()

    def read_cpu_ns(self) -> tuple[int, ...]:
        """Return an empty tuple."""
        return ()


@dataclass(frozen=True)
class Processes:
    """The processes of an arm: the load's sessions, the server's other processes, the load generator's."""

    sessions: tuple[int, ...]
    background: tuple[int, ...]
    clients: tuple[int, ...]
    client_threads: frozenset[int]
    cpus: tuple[int, ...]
    spinners: tuple[int, ...] = ()  # processes that keep CPUs awake; not counted as work

    @classmethod
    def of(cls, arm: Arm, clients: tuple[int, ...], split: CpuSplit) -> Processes:
        """Return the processes that exist now; call it once the load is connected."""
        sessions = arm.session_pids()
        background = tuple(pid for pid in arm.server_pids() if pid not in sessions)
        client_threads = frozenset(thread for pid in clients for thread in threads(pid))
        return cls(sessions, background, clients, client_threads, split.server, split.spinners)

    def read(self) -> Counters:
        """Return the present values of all counters."""
        host = read_host_cpu(self.cpus, without=self.spinners)
        return Counters(
            session_cpu=_cpu_ns(self.sessions),
            session_queue=sum(map(queue_ns, self.sessions)),
            background_cpu=_cpu_ns(self.background),
            client_cpu=_cpu_ns(self.clients),
            client_queue=sum(queue_ns(pid, thread) for pid in self.clients for thread in threads(pid)),
            stolen=int(host.steal_s * 1e9),
            busy=int(host.busy_s * 1e9),
        )


def _cpu_ns(pids: Sequence[int]) -> int:
    return sum(cpu_ns(pid) or 0 for pid in pids)


@dataclass(frozen=True)
class Turn:
    """A turn of an arm's load: its start and end on two clocks, and the counters' increments."""

    wall_ns: tuple[int, int]
    monotonic_ns: tuple[int, int]
    added: Counters


def take_turn(turns: Turns, arm: int, processes: Processes, seconds: float) -> Turn:
    """Run an arm's load for ``seconds``. Raises: GeneratorFailedError."""
    before, began_ns = processes.read(), time.monotonic_ns()
    [taken] = turns.take([arm], slice_s=seconds, head_s=0.0, servers=NoServers())
    ended_ns = time.monotonic_ns()
    wall_ns = (taken.start_ns, taken.drained_ns or taken.end_ns)
    return Turn(wall_ns, (began_ns, ended_ns), processes.read().since(before))


class _Timed(Protocol):
    @property
    def at_ns(self) -> int: ...


class _Lasting(Protocol):
    @property
    def monotonic_ns(self) -> tuple[int, int]: ...


Item = TypeVar("Item", bound=_Timed)


@dataclass(frozen=True)
class PerfData:
    """perf's recordings of all arms; ``idle`` are the threads that run while a CPU has nothing to do."""

    stacks: Sequence[Stack]
    events: Sequence[SchedulingEvent]
    idle: Collection[int]


def cycles_of(
    taken: ArmTurns, processes: Processes, log: Transactions, recorded: PerfData
) -> tuple[Cycle, ...]:
    """Return the cycles of an arm. Raises: MeasurementError if no transaction ended within a window."""
    stacks = within(recorded.stacks, taken.sampled)
    events = within(recorded.events, taken.traced)
    sampled = [Sampled.of(one, processes.sessions) for one in stacks]
    server, client = frozenset(processes.sessions), processes.client_threads
    traced = [
        Traced(
            _window(turn, log),
            delays_of(of_turn, server, recorded.idle),
            delays_of(of_turn, client, recorded.idle),
        )
        for turn, of_turn in zip(taken.traced, events, strict=True)
    ]
    return tuple(
        Cycle(
            _window(plain, log),
            _window(taken.sampled[index], log),
            sampled[index],
            taken.waits[index],
            traced[index] if traced else None,
        )
        for index, plain in enumerate(taken.plain)
    )


def counted_of(taken: ArmTurns, events: Mapping[str, str], log: Transactions) -> Microarchitecture | None:
    """Return the figures of an arm's windows with hardware counters; None without such windows.

    ``events`` maps figures to perf's events.
    """
    windows = [
        CountedWindow(counts, transactions)
        for turn, counts in taken.hardware
        if (transactions := transactions_in((turn,), log))
    ]
    return of_hardware(windows, events) if windows else None


def transactions_in(turns: Iterable[Turn], log: Transactions) -> int:
    """Return the number of transactions that ended within turns."""
    return sum(int(_ended(turn, log).sum()) for turn in turns)


def within(items: Iterable[Item], turns: Sequence[_Lasting]) -> list[list[Item]]:
    """Return, for each turn or other period, the items recorded during it."""
    found: list[list[Item]] = [[] for _ in turns]
    begins = [turn.monotonic_ns[0] for turn in turns]
    for item in items:
        index = bisect_right(begins, item.at_ns) - 1
        if index >= 0 and item.at_ns <= turns[index].monotonic_ns[1]:
            found[index].append(item)
    return found


def _window(turn: Turn, log: Transactions) -> Window:
    latencies = log.latency_us[_ended(turn, log)]
    seconds = (turn.wall_ns[1] - turn.wall_ns[0]) / 1e9
    if not len(latencies):
        raise MeasurementError(
            f"no transaction ended within a window of {seconds:.1f} s",
            hint="a profile needs transactions that take milliseconds or less",
        )
    return Window(seconds, len(latencies), float(latencies.mean()), turn.added)


def _ended(turn: Turn, log: Transactions) -> np.ndarray[tuple[int], np.dtype[np.bool]]:
    return (log.completed_ns >= turn.wall_ns[0]) & (log.completed_ns <= turn.wall_ns[1])
