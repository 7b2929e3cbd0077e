"""Delays of threads, from the scheduler's trace."""

from __future__ import annotations

from pgdyno.profile.scheduling import CpuSwitch, Delays, SchedulingEvent, Waking, delays_of, parse_scheduling

SWITCH = "prev_comm={} prev_pid={} prev_prio=120 prev_state={} ==> next_comm={} next_pid={} next_prio=100"
RECORDED = (
    "  958 [000]   861.508952943: sched:sched_waking: comm=pgdyno-driver pid=960 prio=120 target_cpu=001\n",
    f"  915 [000]   861.508957742: sched:sched_switch: {SWITCH.format('pg', 915, 'D', 'pg', 958)}\n",
    f"    0 [001]   861.509000000: sched:sched_switch: {SWITCH.format('swapper/1', 0, 'R', 'driver', 960)}\n",
    f"  958 [000]   861.509100000: sched:sched_switch: {SWITCH.format('postgres', 958, 'R+', 'x y', 30)}\n",
)


def test_events_are_read_as_perf_prints_them() -> None:
    assert list(parse_scheduling(RECORDED)) == [
        Waking(861_508_952_943, 960),
        CpuSwitch(861_508_957_742, 915, 958, is_preempted=False),
        CpuSwitch(861_509_000_000, 0, 960, is_preempted=True),
        CpuSwitch(861_509_100_000, 958, 30, is_preempted=True),
    ]


def test_a_process_whose_name_looks_like_an_event_changes_nothing() -> None:
    waking = "1 [000] 1.000000000: sched:sched_waking: comm=x pid=7 prio=1 pid=960 prio=120 target_cpu=001"
    name = "a ==> next_pid="  # 15 characters, as long as a name can be
    switch = f"1 [000] 2.000000000: sched:sched_switch: {SWITCH.format(name, 5, 'S', name, 6)}"
    assert list(parse_scheduling([waking, switch, "garbage", ""])) == [
        Waking(1_000_000_000, 960),
        CpuSwitch(2_000_000_000, 5, 6, is_preempted=False),
    ]


def test_waking_an_idle_cpu_is_told_from_waiting_behind_another_thread() -> None:
    events: list[SchedulingEvent] = [
        Waking(100, 7),
        CpuSwitch(130, 0, 7, is_preempted=True),  # 30 ns on an idle CPU
        CpuSwitch(200, 7, 0, is_preempted=False),
        Waking(300, 7),
        CpuSwitch(350, 9, 7, is_preempted=False),  # 50 ns behind 9
        CpuSwitch(400, 7, 9, is_preempted=True),
        CpuSwitch(470, 9, 7, is_preempted=False),  # 70 ns, because it had to give way
        Waking(500, 8),  # another one's
        CpuSwitch(600, 7, 8, is_preempted=False),
    ]
    assert delays_of(events, {7}) == Delays(waking_ns=30, queue_ns=120, wakings=2)


def test_a_cpu_that_is_kept_awake_by_a_spinner_counts_as_idle() -> None:
    events: list[SchedulingEvent] = [Waking(100, 7), CpuSwitch(104, 66, 7, is_preempted=True)]
    assert delays_of(events, {7}, idle={0, 66}) == Delays(waking_ns=4, queue_ns=0, wakings=1)


def test_a_trace_that_lacks_events_says_how_many_wakings_came_to_nothing() -> None:
    events: list[SchedulingEvent] = [
        Waking(100, 7),  # its beginning is missing
        CpuSwitch(200, 7, 0, is_preempted=False),
        Waking(300, 7),  # that and its end
        Waking(400, 7),
        CpuSwitch(410, 0, 7, is_preempted=True),
    ]
    delays = delays_of(events, {7})
    assert delays == Delays(waking_ns=10, queue_ns=0, wakings=1, lost=2)
    assert delays.lost_share == 2 / 3


def test_what_began_before_the_trace_is_not_counted() -> None:
    assert delays_of([CpuSwitch(100, 0, 7, is_preempted=True)], {7}) == Delays(0, 0, 0)
