"""A recorded bundle and a simulated second machine: what differs is what was made up, and nothing else.

And two that were recorded on one machine by the same command, of a server for x86 and of one for Arm that ran
emulated: what it did can be compared, how fast it was cannot.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fixtures.bundles.simulated_machine import (
    NOTE,
    RATIO,
    RECORDED,
    SIMULATED,
    simulated,
)

from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.machine_comparison import MachineComparison
from pgdyno.model.experiments.verdict import Decision
from pgdyno.results.machines.machine_comparison import compare_machines
from pgdyno.store.bundle import check_bundle

MADE_UP = {
    "compiler's flags",
    "compiler",
    "memory allocator",
    "kernel",
    "CPU vulnerability mitigations",
    "transparent huge pages",
    "clock source",
    "vm.dirty_background_ratio",
    "vm.swappiness",
    "max_wal_size",
    "random_page_cost",
    "track_io_timing",
}
NATIVE, EMULATED = (RECORDED.with_name(f"{name}.zip") for name in ("native", "emulated"))
STOLEN = "CPU time taken by the hypervisor"


def read(path: Path) -> Experiment:
    found = check_bundle(path)
    assert found.problems == ()
    assert found.experiment is not None
    return found.experiment


@pytest.fixture(scope="module")
def found() -> MachineComparison:
    return compare_machines(read(RECORDED), read(SIMULATED), {"A": 0.35, "B": 0.28})


def test_the_second_machine_is_made_of_the_first_by_the_script_and_says_so() -> None:
    assert read(SIMULATED) == simulated(read(RECORDED))
    assert read(SIMULATED).notes[0] == NOTE
    assert NOTE not in read(RECORDED).notes


def test_the_recorded_bundle_names_no_host() -> None:
    assert read(RECORDED).host["hostname"]["unknown"] == "left out of the bundle"


def test_the_planted_ratios_lie_in_their_intervals(found: MachineComparison) -> None:
    """Of some 15 intervals of 95 % one or two may miss. Levels that the search left out early have none."""
    intervals = [(one.metric, one.verdict.interval) for one in found.metrics]
    covered = [
        interval.low <= RATIO[metric] <= interval.high
        for metric, interval in intervals
        if interval is not None
    ]
    assert len(covered) >= 12
    assert sum(covered) >= len(covered) - 2
    assert Decision.WORSE not in {one.verdict.decision for one in found.metrics}


def test_every_number_of_clients_is_compared(found: MachineComparison) -> None:
    cells = [(one.load, one.clients) for one in found.metrics if one.metric == "throughput_tps"]
    assert sorted(cells) == [
        (load, clients) for load in ("pgbench-select", "pgbench-tpcb") for clients in (1, 2, 3, 4)
    ]


def test_what_was_made_up_is_found_and_nothing_else_differs(found: MachineComparison) -> None:
    assert {one.subject for one in found.differences if one.is_known} - {STOLEN} == MADE_UP
    unknown = {one.subject: (one.a, one.b) for one in found.differences if not one.is_known}
    assert unknown == {"frequency governor": (None, "performance")}


def test_that_instances_are_compared_is_said(found: MachineComparison) -> None:
    assert "this compares instances, not architectures: CPUs 2 and 4; cores 2 and 4" in found.warnings
    assert [side.machine.partition(",")[2] for side in found.sides] == [" 2 CPUs", " 4 CPUs"]
    assert found.sides[1].notes == (NOTE,)
    assert found.warnings[0] == f"B IS {NOTE}"


def test_price_and_frequency_follow_from_the_ratio(found: MachineComparison) -> None:
    ratios = {(one.workload, one.metric): one.verdict.effect for one in found.metrics}
    mhz = read(RECORDED).host["cpu"]["frequency_mhz"]["value"]
    for one in found.per_price:
        assert one.ratio.point == pytest.approx((ratios[one.workload, "throughput_tps"] or 0) * 0.35 / 0.28)
    rates = [one for one in found.per_frequency if one.title.startswith("throughput")]
    with_interval = [one for one in found.metrics if one.metric == "throughput_tps" and one.verdict.interval]
    assert len(rates) == len(found.per_price) == len(with_interval) >= 4
    for one in rates:
        expected = (ratios[one.workload, "throughput_tps"] or 0) * mhz / 3000
        assert one.ratio.point == pytest.approx(expected)


def test_a_recorded_server_that_ran_emulated_did_the_same_work_and_has_no_speed() -> None:
    native, emulated = read(NATIVE), read(EMULATED)
    assert (native.emulated_machine, emulated.emulated_machine) == ("", "aarch64")
    assert " on aarch64-unknown-linux-gnu" in emulated.server["build"]
    found = compare_machines(native, emulated)
    assert found.warnings[0].startswith("B RAN EMULATED: its server was built for aarch64.")
    assert {one.workload for one in found.metrics} == {
        f"{load}-{clients}" for load in ("pgbench-select", "pgbench-tpcb") for clients in (1, 2)
    }
    assert all(one.a and one.b is None and one.verdict.interval is None for one in found.metrics)
    assert {one.subject for one in found.differences if one.is_known} >= {"compiler", "compiler's flags"}
    assert found.left_out == ()
