"""Hardware counters per transaction, and what the processor's slots went to."""

from __future__ import annotations

import pytest

from pgdyno.profile.hardware import (
    BACKEND,
    BAD_SPECULATION,
    FRONTEND,
    RETIRING,
    Count,
    CountedWindow,
    PerfCounts,
    has_first_level,
    of_hardware,
    parse_perf_stat,
    slot_shares,
)
from pgdyno.profile.records.microarchitecture import Mean

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


# Recorded: Intel Sapphire Rapids, perf of Linux 6.5; Kan Liang, "New metricgroup output in perf stat default
# mode", linux-perf-users, 15 June 2023. Shortened.
SAPPHIRE_RAPIDS = """\
{"counter-value" : "225904.823297", "unit" : "msec", "event" : "cpu-clock", "event-runtime" : 225904323425, \
"pcnt-running" : 100.00, "metric-value" : "224.456872", "metric-unit" : "CPUs utilized"}
{"counter-value" : "48433482.000000", "unit" : "", "event" : "cycles", "event-runtime" : 225903792732, \
"pcnt-running" : 100.00, "metric-value" : "0.000214", "metric-unit" : "GHz"}
{"counter-value" : "38620409.000000", "unit" : "", "event" : "instructions", "event-runtime" : 225903657830, \
"pcnt-running" : 100.00, "metric-value" : "0.797391", "metric-unit" : "insn per cycle"}
{"event-runtime" : 225902840555, "pcnt-running" : 100.00, "metricgroup" : "TopdownL1"}
{"metric-value" : "69.950631", "metric-unit" : "%  tma_backend_bound"}
{"metric-value" : "2.771783", "metric-unit" : "%  tma_bad_speculation"}
{"metric-value" : "12.026074", "metric-unit" : "%  tma_frontend_bound"}
{"metric-value" : "15.251513", "metric-unit" : "%  tma_retiring"}
{"event-runtime" : 225902840555, "pcnt-running" : 100.00, "metricgroup" : "TopdownL2"}
{"metric-value" : "2.351757", "metric-unit" : "%  tma_branch_mispredicts"}
{"metric-value" : "19.729771", "metric-unit" : "%  tma_core_bound"}
{"metric-value" : "4.555207", "metric-unit" : "%  tma_fetch_bandwidth"}
{"metric-value" : "7.470867", "metric-unit" : "%  tma_fetch_latency"}
{"metric-value" : "2.938808", "metric-unit" : "%  tma_heavy_operations"}
{"metric-value" : "12.312705", "metric-unit" : "%  tma_light_operations"}
{"metric-value" : "0.420026", "metric-unit" : "%  tma_machine_clears"}
{"metric-value" : "50.220860", "metric-unit" : "%  tma_memory_bound"}
"""
# Recorded: `perf stat -a -M TopdownL1 -j true`, Intel, perf of Linux 6.13; Namhyung Kim, pull request "perf
# tools changes for v6.13". Lines end with a comma before the brace. Shortened.
WITH_COMMAS = """\
{"counter-value" : "18693525.000000", "unit" : "", "event" : "TOPDOWN.SLOTS", "event-runtime" : 5552708, \
"pcnt-running" : 100.00, "metric-value" : "43.226002", "metric-unit" : "%  tma_backend_bound", \
"metric-threshold" : "bad"}
{"metric-value" : "29.212267", "metric-unit" : "%  tma_frontend_bound", "metric-threshold" : "bad"}
{"counter-value" : "3817732.000000", "unit" : "", "event" : "topdown-retiring", "event-runtime" : 5552708, \
"pcnt-running" : 100.00, }
"""
# Recorded: an Intel processor with two kinds of cores; the same message of Kan Liang. Shortened.
HYBRID = """\
{"counter-value" : "18685492.000000", "unit" : "", "event" : "cpu_core/cycles/", \
"event-runtime" : 16061585292, "pcnt-running" : 100.00, "metric-value" : "0.000582", "metric-unit" : "GHz"}
{"counter-value" : "255620352.000000", "unit" : "", "event" : "cpu_atom/cycles/", \
"event-runtime" : 8690268422, "pcnt-running" : 54.00, "metric-value" : "0.007955", "metric-unit" : "GHz"}
{"metric-value" : "nan", "metric-unit" : "%  tma_backend_bound"}
{"metric-value" : "0.000000", "metric-unit" : "%  tma_bad_speculation"}
{"metric-value" : "13.719821", "metric-unit" : "%  tma_bad_speculation"}
{"event-runtime" : 10240582902, "pcnt-running" : 63.00, "metric-value" : "39.327764", \
"metric-unit" : "%  tma_backend_bound"}
"""
# Recorded: a virtual machine without counters, perf 6.1 of Debian 12.
WITHOUT_COUNTERS = """\
{"counter-value" : "<not supported>", "unit" : "", "event" : "cycles", "event-runtime" : 0, \
"pcnt-running" : 100.00, "metric-value" : 0.000000, "metric-unit" : ""}
"""
# Documented: AMD Zen 5. The format is perf's; names and units are those of
# tools/perf/pmu-events/arch/x86/amdzen5/pipeline.json ("ScaleUnit": "100%slots").
ZEN_5 = """\
{"metric-value" : "34.900000", "metric-unit" : "%slots  frontend_bound"}
{"metric-value" : "7.000000", "metric-unit" : "%ops  bad_speculation"}
"""
# Documented: Arm. Values and units were recorded as text ("1.8 percent of slots  frontend_bound"; Arm
# Learning Paths, "Perform root cause analysis with Perf C2C"); the JSON around them follows perf's format.
NEOVERSE = """\
{"metric-value" : "1.800000", "metric-unit" : "percent of slots  frontend_bound"}
{"metric-value" : "85.800000", "metric-unit" : "percent of slots  backend_bound"}
"""


def test_counts_and_metrics_of_both_levels() -> None:
    found = parse_perf_stat(SAPPHIRE_RAPIDS.splitlines())
    assert found.counts["cycles"] == Count(48433482.0, 1.0)
    assert found.counts["instructions"] == Count(38620409.0, 1.0)
    assert found.metrics["tma_backend_bound"] == 69.950631
    assert found.metrics["tma_memory_bound"] == 50.22086
    assert not found.is_user_alone
    assert not found.unsettled


def test_a_comma_before_the_brace_is_read_over() -> None:
    found = parse_perf_stat(WITH_COMMAS.splitlines())
    assert found.counts["topdown-retiring"].value == 3817732.0
    assert found.metrics == {"tma_backend_bound": 43.226002, "tma_frontend_bound": 29.212267}


def test_kinds_of_cores_are_added_up_and_metrics_on_which_they_differ_are_not_told() -> None:
    found = parse_perf_stat(HYBRID.splitlines())
    assert found.counts["cycles"] == Count(18685492.0 + 255620352.0, 0.54)
    assert found.metrics["tma_backend_bound"] == 39.327764
    assert found.unsettled == {"tma_bad_speculation", "GHz"}


def test_what_is_not_supported_is_missing() -> None:
    assert parse_perf_stat(WITHOUT_COUNTERS.splitlines()).counts == {}


@pytest.mark.parametrize(
    ("lines", "metrics"),
    [
        (ZEN_5, {"frontend_bound": 34.9, "bad_speculation": 7.0}),
        (NEOVERSE, {"frontend_bound": 1.8, "backend_bound": 85.8}),
    ],
)
def test_a_metrics_name_is_the_last_word_of_its_unit(lines: str, metrics: dict[str, float]) -> None:
    assert parse_perf_stat(lines.splitlines()).metrics == metrics


@pytest.mark.parametrize("event", ["cycles:u", "cpu_core/cycles/u", "cpu/cycles/u"])
def test_events_of_user_code_alone_are_known_by_their_limit(event: str) -> None:
    line = f'{{"counter-value" : "5.0", "event" : "{event}", "pcnt-running" : 40.00}}'
    found = parse_perf_stat([line])
    assert found.counts == {"cycles": Count(5.0, 0.4)}
    assert found.is_user_alone


def test_other_lines_are_left_out() -> None:
    assert parse_perf_stat(["# started on Wed Nov 25", "", '{"event" : ', '{"event" : "x"}']).counts == {}
