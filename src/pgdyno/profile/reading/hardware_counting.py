"""A profile's hardware counters: find the events that this machine counts, and count them in windows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pgdyno.base.errors import ServerError
from pgdyno.host.tracing.perf import Tried, counting, find_perf, try_counters
from pgdyno.postgres.process.account import caller
from pgdyno.profile.hardware import EVENTS, GROUPS, PerfCounts, has_first_level, parse_perf_stat
from pgdyno.profile.records.microarchitecture import CYCLES, INSTRUCTIONS

_NONE = "no hardware counters"
_HINT = "pgdyno profile WORKLOAD --simulate"
_MOST_WORDS = 160
Taken = TypeVar("Taken")


@dataclass
class HardwareCounters:
    """The hardware counters of the sessions' processes.

    ``events`` maps figures to perf's events; ``groups`` are groups of perf's metrics. Without events nothing
    is counted, and ``remarks`` contain the reason.
    """

    directory: Path
    program: str = ""
    events: Mapping[str, str] = field(default_factory=dict)
    groups: str = ""
    remarks: list[str] = field(default_factory=list)
    has_failed: bool = False

    @property
    def are_there(self) -> bool:
        """Whether anything is counted."""
        return bool(self.events) and not self.has_failed

    def count(self, pids: Collection[int], take: Callable[[], Taken]) -> tuple[Taken, PerfCounts] | None:
        """Count the processes during a turn; None if perf fails, and no further counting then."""
        try:
            file = self.directory / "perf-counters.json"
            with counting(
                self.program, [*self.events.values()], self.groups, pids, file, caller().command
            ) as perf:
                with perf.on():
                    taken = take()
                return taken, parse_perf_stat(perf.read())
        except ServerError as error:
            self.remarks.append(f"{_NONE}: {error.detail or error.message}")
            self.has_failed = True
            return None


def find_hardware_counters(directory: Path) -> HardwareCounters:
    """Find the figures that this machine counts, by counting a short program."""
    found = HardwareCounters(directory)
    program = find_perf()
    if program is None:
        found.remarks.append(f"{_NONE}: perf is not installed for this kernel")
        return found
    found.program = program
    both = tuple(EVENTS[name][0] for name in (INSTRUCTIONS, CYCLES))
    if reason := lacking(try_counters(program, both), both):
        found.remarks.append(f"{_NONE}: {reason}; a simulation shows some of these figures: {_HINT}")
        return found
    tried = ((name, event) for name, events in EVENTS.items() for event in events)
    events: dict[str, str] = {}
    for name, event in tried:
        if name not in events and not lacking(try_counters(program, (event,)), (event,)):
            events[name] = event
    found.events = events
    tried_groups = ((one, parse_perf_stat(try_counters(program, groups=one).lines).metrics) for one in GROUPS)
    found.groups = next((one for one, metrics in tried_groups if has_first_level(metrics)), "")
    if not found.groups:
        found.remarks.append("perf has no top-down metrics for this CPU: only counts of events are shown")
    return found


def lacking(tried: Tried, events: Sequence[str]) -> str:
    """Return the reason if any event is not counted; empty if all are counted."""
    counts = parse_perf_stat(tried.lines).counts
    missing = [event for event in events if event not in counts]
    if not missing:
        return ""
    if tried.words:
        return tried.words[:_MOST_WORDS]
    return (
        f"perf does not count {' and '.join(missing)} here: this machine has no access to the CPU's "
        "counters, like most virtual machines"
    )
