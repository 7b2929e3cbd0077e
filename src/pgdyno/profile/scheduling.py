"""Compute how long threads waited for a CPU, from the scheduler's trace.

The lines are those of ``perf script -F tid,cpu,time,event,trace --ns`` for sched_waking and sched_switch.
They contain process names, which any user can choose; the patterns anchor on the fields after the names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

_EVENT = re.compile(r"\s*-?\d+ \[\d+\]\s+(?P<s>\d+)\.(?P<ns>\d{9}): sched:sched_\w+: (?P<rest>.*)")
_WAKING = re.compile(r"comm=.* pid=(\d+) prio=-?\d+ target_cpu=\d+")
_SWITCH = re.compile(
    r"prev_comm=.* prev_pid=(\d+) prev_prio=-?\d+ prev_state=(\S+) ==> "
    r"next_comm=.* next_pid=(\d+) next_prio=-?\d+"
)
_RUNNABLE = "R"  # R or R+: preempted, still runnable


@dataclass(frozen=True, slots=True)
class Waking:
    """A wakeup of a thread."""

    at_ns: int
    thread: int


@dataclass(frozen=True, slots=True)
class CpuSwitch:
    """A context switch from one thread to another; thread 0 is the idle task.

    ``is_preempted``: the first thread is still runnable.
    """

    at_ns: int
    left: int
    begun: int
    is_preempted: bool


SchedulingEvent = Waking | CpuSwitch


@dataclass(frozen=True)
class Delays:
    """Time in which threads were runnable but did not run, in ns.

    ``waking_ns``: from the wakeup on an idle CPU until the thread ran. ``queue_ns``: the CPU ran something
    else. ``lost`` is the number of wakeups without a following run in the trace: events are missing.
    """

    waking_ns: int
    queue_ns: int
    wakings: int
    lost: int = 0

    @property
    def lost_share(self) -> float:
        """The share of wakeups that are lost."""
        return self.lost / (self.lost + self.wakings) if self.lost else 0.0


def parse_scheduling(lines: Iterable[str]) -> Iterator[SchedulingEvent]:
    """Yield the events in perf's output; other lines are skipped."""
    for line in lines:
        if event := _EVENT.fullmatch(line.rstrip("\n")):
            at_ns = int(event["s"]) * 1_000_000_000 + int(event["ns"])
            if found := _SWITCH.fullmatch(event["rest"]):
                left, state, begun = found.groups()
                yield CpuSwitch(at_ns, int(left), int(begun), state.startswith(_RUNNABLE))
            elif found := _WAKING.fullmatch(event["rest"]):
                yield Waking(at_ns, int(found[1]))


def delays_of(
    events: Iterable[SchedulingEvent], threads: Collection[int], idle: Collection[int] = (0,)
) -> Delays:
    """Add up the delays of threads. ``idle`` are the threads that run while a CPU has nothing to do.

    Delays that began before the first event or end after the last one are not counted.
    """
    woken_ns: dict[int, int] = {}
    preempted_ns: dict[int, int] = {}
    waking = queued = wakings = lost = 0
    for event in events:
        if isinstance(event, Waking):
            if event.thread in threads:
                lost += event.thread in woken_ns
                woken_ns[event.thread] = event.at_ns
            continue
        if event.left in threads:
            lost += woken_ns.pop(event.left, None) is not None  # it ran, but the switch to it is missing
            if event.is_preempted:
                preempted_ns[event.left] = event.at_ns
        if event.begun not in threads:
            continue
        if (since := preempted_ns.pop(event.begun, None)) is not None:
            queued += event.at_ns - since
            woken_ns.pop(event.begun, None)  # it was runnable: the wakeup had no effect
        elif (since := woken_ns.pop(event.begun, None)) is not None:
            wakings += 1
            if event.left in idle:
                waking += event.at_ns - since
            else:
                queued += event.at_ns - since
    return Delays(waking, queued, wakings, lost)
