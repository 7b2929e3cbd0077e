"""An account adds up: lines from counters, samples, traces and looks, each with its interval."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pgdyno.plan import levers
from pgdyno.profile import parts
from pgdyno.profile.account import account, difference, kernel_entries, mean_time
from pgdyno.profile.cycles import Counters, Cycle, Sampled, Traced, Window
from pgdyno.profile.reading.profile import by_shape
from pgdyno.profile.records.profile_record import (
    AccountGroup,
    AccountLine,
    StatementTime,
    Time,
    TransactionProfile,
)
from pgdyno.profile.scheduling import Delays
from pgdyno.profile.stacks import Stack
from pgdyno.profile.summary import Profiled, sum_up

PROFILED = Profiled("default", "made-up", sessions=2.0, cpus=1)


def window(latency_us: float = 1000.0, transactions: int = 2000, **added_us: float) -> Window:
    """Return a window of a second; ``added_us`` are counters in µs per transaction."""
    named = ("session_cpu", "session_queue", "background_cpu", "client_cpu", "client_queue", "stolen", "busy")
    counters = {name: int(added_us.get(name, 0.0) * transactions * 1000) for name in named}
    return Window(1.0, transactions, latency_us, Counters(**counters))


def sampled(parts_seen: Mapping[str, int]) -> Sampled:
    return Sampled(parts_seen, {}, {})


def us_by_name(lines: tuple[AccountLine, ...]) -> dict[str, float]:
    return {f"{line.group}: {line.name}": round(line.time.us, 6) for line in lines}


def test_all_sources_together_make_one_account() -> None:
    plain = window(session_cpu=400, session_queue=250, client_cpu=100, stolen=20)
    looked_at = window(latency_us=1100, transactions=1000)
    traced = Traced(
        window(session_queue=300, client_queue=10),
        server=Delays(waking_ns=2000 * 30_000, queue_ns=2000 * 240_000, wakings=1),
        client=Delays(waking_ns=2000 * 40_000, queue_ns=2000 * 10_000, wakings=1),
    )
    samples = sampled({parts.PLANNING: 75, parts.SORTING: 25})
    lines = account([Cycle(plain, looked_at, samples, {"IO:WalSync": 0.05}, traced)])
    assert us_by_name(lines) == {
        "client: load generator's CPU time": 100.0,
        "waking up: sessions, on an idle CPU": 30.0,
        "run queue: sessions, behind others": 200.0,  # 250, of which 240/300 were behind others
        "waking up: load generator, on an idle CPU": 40.0,
        "server: planning": 300.0,
        "server: sorting": 100.0,
        "waiting: IO:WalSync": 50.0,  # 0.05 sessions at 1000 transactions a second
        "stolen: by the hypervisor": 20.0,
    }
    profile = sum_up(PROFILED, [Cycle(plain, looked_at, samples, {"IO:WalSync": 0.05}, traced)], (), ())
    assert profile.unaccounted_us == pytest.approx(160.0)
    assert profile.unaccounted_share == pytest.approx(0.16)
    assert profile.sampling_slowdown == Time(100.0)


def test_a_trace_that_lacks_wakings_is_not_used() -> None:
    traced = Traced(window(session_queue=1), Delays(1000, 1000, 90, lost=10), Delays(0, 0, 0))
    lines = us_by_name(account([Cycle(window(session_queue=250), traced=traced)]))
    assert lines == {"run queue: sessions, waiting for a CPU": 250.0}


def test_without_perf_work_and_queues_are_lines_of_their_own() -> None:
    lines = account([Cycle(window(session_cpu=400, session_queue=250, client_cpu=100, client_queue=7))])
    assert us_by_name(lines) == {
        "client: load generator's CPU time": 100.0,
        "run queue: sessions, waiting for a CPU": 250.0,
        "run queue: load generator, waiting for a CPU": 7.0,
        "server: work of sessions": 400.0,
    }


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


def test_statements_of_numbered_tables_are_one() -> None:
    def one(sql: str, planning_us: float) -> StatementTime:
        return StatementTime(sql, 1.0, planning_us, 2.0, 3.0, 4.0, 5.0)

    point, end = "SELECT c FROM sbtest{} WHERE id=$1", "COMMIT"
    found = by_shape([one(end, 0.0), one(point.format(1), 6.0), one(point.format(12), 1.0)])
    assert found == (
        StatementTime("SELECT c FROM sbtest# WHERE id=$1", 2.0, 7.0, 4.0, 6.0, 8.0, 10.0),
        one(end, 0.0),
    )


def profile_of(cpu_share: float, **us: float) -> TransactionProfile:
    cycle = Cycle(
        window(session_cpu=us["work"], session_queue=us["queue"], busy=cpu_share * 500),
        sampled=sampled({parts.PLANNING: 1, parts.SORTING: 3}),
    )
    return sum_up(PROFILED, [cycle], (), ())


def test_a_saturated_server_gains_by_less_work_alone() -> None:
    gains = {one.lines: one.gain for one in profile_of(1.0, work=400, queue=500).advice}
    assert gains == pytest.approx({("sorting",): 3.0, ("planning",): 1 / 3})


def test_a_server_with_idle_cpus_gains_by_shorter_transactions() -> None:
    found = {one.lines: one for one in profile_of(0.3, work=400, queue=500).advice}
    queue = "sessions, waiting for a CPU"
    assert {lines: one.gain for lines, one in found.items()} == pytest.approx(
        {(queue,): 1.0, ("sorting",): 1 / 0.7 - 1, ("planning",): 1 / 0.9 - 1}
    )
    assert found["planning",].levers == ("plan_cache_mode",)


def test_pages_that_are_copied_from_the_page_cache_ask_for_larger_buffers() -> None:
    cycle = Cycle(window(session_cpu=400), sampled=sampled({parts.PAGES_READ: 1, parts.SORTING: 3}))
    found = {one.lines: one for one in sum_up(PROFILED, [cycle], (), ()).advice}
    assert found["reading pages into shared buffers",].levers[0] == "shared_buffers"


def test_advice_names_levers_that_exist() -> None:
    waits = dict.fromkeys(("IO:WalSync", "IO:DataFileRead", "LWLock:WALWrite", "Lock:tuple"), 0.4)
    every_part = (value for name, value in vars(parts).items() if name.isupper() and not name.startswith("_"))
    cycle = Cycle(
        window(session_cpu=400, session_queue=500, stolen=100, client_cpu=100),
        window(),
        sampled(dict.fromkeys(every_part, 1)),
        waits,
        Traced(window(session_queue=1), Delays(2000 * 90_000, 1, 1), Delays(1, 1, 1)),
    )
    named = {lever for one in sum_up(PROFILED, [cycle], (), ()).advice for lever in one.levers}
    assert {"plan_cache_mode", "wal_device", "shared_buffers", "halt_polling", "optimised_build"} <= named
    assert named <= levers.load().keys()
