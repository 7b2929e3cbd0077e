"""Hardware counters per transaction, and what the processor's slots went to."""

from __future__ import annotations

import pytest

from pgdyno.profile.hardware import CountedWindow, of_hardware
from pgdyno.profile.perf_stat import Count, PerfCounts
from pgdyno.profile.records.microarchitecture import Mean
from pgdyno.profile.topdown import BACKEND, BAD_SPECULATION, FRONTEND, RETIRING, has_first_level, slot_shares

EVENTS = {"instructions": "instructions", "cycles": "cycles", "L1i misses": "l1i_cache_refill"}
INTEL = {
    "tma_frontend_bound": 12.0,
    "tma_bad_speculation": 2.5,
    "tma_backend_bound": 70.0,
    "tma_retiring": 15.5,
    "tma_fetch_latency": 7.5,
    "tma_memory_bound": 50.0,
}


def window(instructions: float, cycles: float, transactions: int, ran: float = 1.0) -> CountedWindow:
    counts = {"instructions": Count(instructions, ran), "cycles": Count(cycles, 1.0)}
    return CountedWindow(PerfCounts(counts, INTEL), transactions)


def test_counts_are_divided_by_the_transactions_of_their_window() -> None:
    found = of_hardware([window(3e6, 2e6, 10), window(6e6, 5e6, 20)], EVENTS)
    instructions, cycles = found.events  # an event that no window has is left out
    assert instructions.per_transaction.value == pytest.approx(300_000)
    assert (instructions.name, instructions.event) == ("instructions", "instructions")
    # 200,000 and 250,000: mean 225,000, t(1) 12.706, standard error 25,000.
    assert cycles.per_transaction.value == pytest.approx(225_000)
    assert cycles.per_transaction.high == pytest.approx(225_000 + 12.706 * 25_000, rel=1e-3)
    assert found.ipc is not None
    assert found.ipc.value == pytest.approx((1.5 + 1.2) / 2)
    assert not found.is_simulated
    assert found.remarks == ()


def test_counters_that_took_turns_are_said() -> None:
    found = of_hardware([window(3e6, 2e6, 10, ran=0.25)], EVENTS)
    assert found.events[0].ran == 0.25
    [remark] = found.remarks
    assert "each was counted at least 25% of the time" in remark


def test_user_code_alone_and_two_kinds_of_cores_are_said() -> None:
    counts = PerfCounts({}, {}, is_user_alone=True, unsettled=frozenset({"tma_retiring", "GHz"}))
    remarks = of_hardware([CountedWindow(counts, 3)], EVENTS).remarks
    assert [remark.partition(":")[0] for remark in remarks] == [
        "hardware counters cover only PostgreSQL's own code",
        "the CPU has cores of two kinds",
    ]


def test_parts_of_the_second_level_follow_the_one_that_they_divide() -> None:
    shares = slot_shares([INTEL])
    assert [(one.name, one.level, one.part_of) for one in shares] == [
        (FRONTEND, 1, ""),
        ("late: caches and addresses of code", 2, FRONTEND),
        (BAD_SPECULATION, 1, ""),
        (BACKEND, 1, ""),
        ("memory", 2, BACKEND),
        (RETIRING, 1, ""),
    ]
    assert [one.share for one in shares] == [Mean(part) for part in (0.12, 0.075, 0.025, 0.7, 0.5, 0.155)]


def test_amds_and_arms_names_are_known() -> None:
    amd = {"frontend_bound": 34.9, "backend_bound": 38.0, "retiring": 9.6, "smt_contention": 10.2}
    found = {one.name: one.share.value for one in slot_shares([{**amd, "frontend_bound_by_latency": 26.4}])}
    assert found["given to the core's other thread"] == pytest.approx(0.102)
    assert found["late: caches and addresses of code"] == pytest.approx(0.264)


def test_a_part_that_one_window_lacks_is_not_told() -> None:
    assert [one.name for one in slot_shares([INTEL, {"tma_retiring": 20.0}])] == [RETIRING]
    assert has_first_level(INTEL)
    assert not has_first_level({"tma_retiring": 20.0})
