"""Why hardware counters are not counted, in perf's words or ours."""

from __future__ import annotations

from pgdyno.host.tracing.perf import Tried
from pgdyno.profile.callgrind import CodeCounts, SimulatedRun
from pgdyno.profile.reading.hardware_counting import lacking
from pgdyno.profile.reading.simulated_sessions import enough

EVENTS = ("instructions", "cycles")
# Recorded: perf 6.1 in a virtual machine.
NOT_SUPPORTED = (
    '{"counter-value" : "<not supported>", "unit" : "", "event" : "instructions", "event-runtime" : 0, '
    '"pcnt-running" : 100.00, "metric-value" : 0.000000, "metric-unit" : ""}'
)
COUNTED = tuple(
    f'{{"counter-value" : "{count}", "unit" : "", "event" : "{event}", "pcnt-running" : 100.00}}'
    for event, count in (("instructions", "38620409.000000"), ("cycles", "48433482.000000"))
)


def test_counters_that_all_count_lack_nothing() -> None:
    assert lacking(Tried(COUNTED, ""), EVENTS) == ""


def test_a_machine_without_counters_is_said() -> None:
    said = lacking(Tried((NOT_SUPPORTED,), ""), EVENTS)
    assert said.startswith("perf does not count instructions and cycles here: this machine has no access")


def test_perfs_own_words_come_first_and_are_cut() -> None:
    said = lacking(Tried((), "Error: Access to performance monitoring is limited. " * 20), EVENTS)
    assert said.startswith("Error: Access to performance monitoring is limited.")
    assert len(said) <= 160


def test_short_transactions_are_simulated_more_often() -> None:
    assert enough(2_000_000, None) == 100
    assert enough(400_000, None) == 200  # 250, to the nearest even hundred
    assert enough(1_000, None) == 3000


def test_a_run_that_is_compared_has_as_many_transactions_as_the_first_one() -> None:
    # 280 more than its session of twenty; by itself, a transaction of 280,000 would be taken 400 times.
    assert enough(280_000, None) == 400
    assert enough(280_000, SimulatedRun(CodeCounts(), 280)) == 300
