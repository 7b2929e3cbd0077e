"""Combine an arm's turns, its load's log and perf's recordings into cycles."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from pgdyno.base.errors import MeasurementError
from pgdyno.measure.blocks.transactions import Transactions
from pgdyno.profile.cycles import Cycle, Sampled, Traced, Window
from pgdyno.profile.hardware import CountedWindow, of_hardware
from pgdyno.profile.reading.counters import Processes, Turn
from pgdyno.profile.reading.cycle_sampling import ArmTurns
from pgdyno.profile.records.microarchitecture import Microarchitecture
from pgdyno.profile.scheduling import SchedulingEvent, delays_of
from pgdyno.profile.stacks import Stack


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
