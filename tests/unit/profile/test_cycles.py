"""Cycles of profiling: what a sample counts for, and intervals over cycles."""

from __future__ import annotations

import pytest
from tests.unit.profile.test_account import us_by_name, window

from pgdyno.profile import parts
from pgdyno.profile.account import account, difference, kernel_entries, mean_time
from pgdyno.profile.cycles import Cycle, Sampled, Traced
from pgdyno.profile.records.profile_record import (
    AccountGroup,
    AccountLine,
    Time,
)
from pgdyno.profile.scheduling import Delays
from pgdyno.profile.stacks import Stack


def test_a_trace_that_lacks_wakings_is_not_used() -> None:
    traced = Traced(window(session_queue=1), Delays(1000, 1000, 90, lost=10), Delays(0, 0, 0))
    lines = us_by_name(account([Cycle(window(session_queue=250), traced=traced)]))
    assert lines == {"run queue: sessions, waiting for a CPU": 250.0}


def test_intervals_come_from_cycles() -> None:
    cycles = [Cycle(window(session_cpu=cpu)) for cpu in (390.0, 400.0, 410.0)]
    [line] = account(cycles)
    assert line.by_cycle == (390.0, 400.0, 410.0)
    assert line.time.us == pytest.approx(400.0)
    # t with 2 degrees of freedom, 0.975: 4.302653; standard error 10 / sqrt(3)
    assert line.time.high_us == pytest.approx(400.0 + 4.302653 * 10 / 3**0.5, rel=1e-4)


def test_a_difference_is_taken_cycle_by_cycle() -> None:
    one = AccountLine(AccountGroup.SERVER, "planning", Time(0.0), "", (10.0, 20.0, 30.0))
    other = AccountLine(AccountGroup.SERVER, "planning", Time(0.0), "", (11.0, 21.0, 31.0))
    assert difference(one, other).us == pytest.approx(1.0)
    assert difference(one, None).us == pytest.approx(-20.0)
    assert difference(None, other).us == pytest.approx(21.0)


def test_one_cycle_has_no_interval() -> None:
    assert mean_time([5.0]) == Time(5.0, None, None)


def test_samples_of_other_processes_are_not_counted() -> None:
    stacks = [
        Stack(1, 0, ("__x64_sys_sendto", "socket_flush"), in_kernel=True),
        Stack(1, 0, ("tuplesort_performsort",), in_kernel=False, file="/bin/postgres", offset=0x4010),
        Stack(2, 0, ("standard_planner",), in_kernel=False),
    ]
    found = Sampled.of(stacks, {1})
    counted = {stack.frames: 1 for stack in stacks[:2]}
    code = {("/bin/postgres", 0x4010, "tuplesort_performsort"): 1}
    by_part = {parts.SENDING: 1, parts.SORTING: 1}
    assert found == Sampled(by_part, {parts.SENDING: 1}, {"sendto": 1}, counted, code)
    entries = kernel_entries([Cycle(window(session_cpu=400), sampled=found)])
    assert [(one.name, one.time.us) for one in entries] == [("sendto", 200.0)]
