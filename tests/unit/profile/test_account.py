"""An account adds up: lines from counters, samples, traces and looks, each with its interval."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from pgdyno.profile import parts
from pgdyno.profile.account import account
from pgdyno.profile.cycles import Counters, Cycle, Sampled, Traced, Window
from pgdyno.profile.records.profile_record import (
    AccountLine,
    Time,
)
from pgdyno.profile.scheduling import Delays
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


def test_without_perf_work_and_queues_are_lines_of_their_own() -> None:
    lines = account([Cycle(window(session_cpu=400, session_queue=250, client_cpu=100, client_queue=7))])
    assert us_by_name(lines) == {
        "client: load generator's CPU time": 100.0,
        "run queue: sessions, waiting for a CPU": 250.0,
        "run queue: load generator, waiting for a CPU": 7.0,
        "server: work of sessions": 400.0,
    }
