"""Advice by the account of a transaction."""

from __future__ import annotations

import pytest
from tests.unit.profile.test_account import PROFILED, sampled, window

from pgdyno.plan import levers
from pgdyno.profile import parts
from pgdyno.profile.cycles import Cycle, Traced
from pgdyno.profile.records.profile_record import (
    TransactionProfile,
)
from pgdyno.profile.scheduling import Delays
from pgdyno.profile.summary import sum_up


def profile_of(cpu_share: float, **us: float) -> TransactionProfile:
    cycle = Cycle(
        window(session_cpu=us["work"], session_queue=us["queue"], busy=cpu_share * 500),
        sampled=sampled({parts.PLANNING: 1, parts.SORTING: 3}),
    )
    return sum_up(PROFILED, [cycle], (), ())


def test_a_saturated_server_gains_by_less_work_alone() -> None:
    gains = {one.lines: one.gain for one in profile_of(1.0, work=400, queue=500).advice}
    # Planning can go altogether; of PostgreSQL's own code, a build saves at most a third.
    assert gains == pytest.approx({("sorting",): 1 / (1 - 0.75 / 3) - 1, ("planning",): 1 / 3})


def test_a_server_with_idle_cpus_gains_by_shorter_transactions() -> None:
    found = {one.lines: one for one in profile_of(0.3, work=400, queue=500).advice}
    queue = "sessions, waiting for a CPU"
    assert {lines: one.gain for lines, one in found.items()} == pytest.approx(
        {(queue,): 1.0, ("sorting",): 1 / 0.9 - 1, ("planning",): 1 / 0.9 - 1}
    )
    assert found["planning",].levers == ("plan_cache_mode",)


def test_a_server_that_only_reads_rows_gains_half_at_most_from_a_build() -> None:
    cycle = Cycle(window(session_cpu=400, busy=500), sampled=sampled({parts.ROWS_READ: 1}))
    [found] = sum_up(PROFILED, [cycle], (), ()).advice
    assert found.gain == pytest.approx(0.5)
    assert found.levers[0] == "optimised_build"


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
