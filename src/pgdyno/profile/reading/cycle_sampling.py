"""Run the cycles of a profile: separate windows for counting, sampling and tracing arms.

    cycle = for each arm: plain · sampled · statements · traced · hardware counters

Separate windows keep the overhead of one method out of the measurements of another. For each kind of window,
the arms take turns; their order is reversed from cycle to cycle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from pgdyno.load.turns import Turns
from pgdyno.measure.arenas.arm import Arm
from pgdyno.measure.statement_counting import StatementCounting
from pgdyno.postgres.process.local_machine import online_cpus
from pgdyno.postgres.sampling.activity import ActivitySampling
from pgdyno.postgres.waits import CPU, ActivitySample
from pgdyno.profile.perf_stat import PerfCounts
from pgdyno.profile.reading.counters import Processes, Turn, take_turn
from pgdyno.profile.reading.hardware_counting import HardwareCounters
from pgdyno.profile.reading.recordings import Recordings

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
            with ActivitySampling(connection, pid, _LOOK_EVERY_S) as activity:
                taken.sampled.append(self._turn(arm, SAMPLED_S))
        taken.waits.append(_mean_waiting_sessions(activity.samples))

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
