"""How long threads waited for a CPU, from the scheduler's trace.

The lines are those of ``perf script -F tid,cpu,time,event,trace --ns`` for sched_waking and sched_switch.
Names of processes stand in them, which anybody chooses: patterns hold on to what follows those.
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
_RUNNABLE = "R"  # R or R+: it had to leave, and wants to go on


@dataclass(frozen=True, slots=True)
class Waking:
    """A thread is woken."""

    at_ns: int
    thread: int


@dataclass(frozen=True, slots=True)
class CpuSwitch:
    """A CPU goes from one thread to another; 0 is an idle CPU's.

    ``is_preempted``: the first wants to go on.
    """

    at_ns: int
    left: int
    begun: int
    is_preempted: bool


SchedulingEvent = Waking | CpuSwitch


@dataclass(frozen=True)
class Delays:
    """Time in which threads could have run and did not, in ns.

    ``waking_ns``: after they were woken on a CPU that was idle. ``queue_ns``: their CPU ran something else.
    ``lost`` wakings are those that have led to no run in the trace: it lacks events.
    """

    waking_ns: int
    queue_ns: int
    wakings: int
    lost: int = 0

    @property
    def lost_share(self) -> float:
        """The share of wakings that the trace says nothing more of."""
        return self.lost / (self.lost + self.wakings) if self.lost else 0.0


def parse_scheduling(lines: Iterable[str]) -> Iterator[SchedulingEvent]:
    """Yield the events of perf's text; other lines are left out."""
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
    """Add up the delays of threads. ``idle`` are those that run while a CPU has nothing to do.

    What began before the first event is not counted, nor what has not ended with the last one.
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
            lost += woken_ns.pop(event.left, None) is not None  # it has run: its beginning is missing
            if event.is_preempted:
                preempted_ns[event.left] = event.at_ns
        if event.begun not in threads:
            continue
        if (since := preempted_ns.pop(event.begun, None)) is not None:
            queued += event.at_ns - since
            woken_ns.pop(event.begun, None)  # it was awake: nothing had to wake it
        elif (since := woken_ns.pop(event.begun, None)) is not None:
            wakings += 1
            if event.left in idle:
                waking += event.at_ns - since
            else:
                queued += event.at_ns - since
    return Delays(waking, queued, wakings, lost)
