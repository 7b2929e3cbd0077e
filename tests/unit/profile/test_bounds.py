"""A profile of the baseline says in a plan's reasons what changes could bring at most."""

from __future__ import annotations

from tests.fix_plan import rich_plan

from pgdyno.profile.bounds import with_bounds
from pgdyno.profile.records.profile_record import Remedy, Time, TransactionProfile


def profile_of(workload: str, *advice: Remedy) -> TransactionProfile:
    return TransactionProfile(
        variant="default",
        workload=workload,
        sessions=4,
        seconds=4.0,
        transactions_per_s=1000.0,
        latency=Time(4000.0),
        lines=(),
        kernel=(),
        statements=(),
        background_us=0.0,
        cpu_share=1.0,
        sampling_slowdown=None,
        advice=advice,
    )


def test_a_change_has_the_bounds_of_all_workloads_in_its_reason() -> None:
    plan = rich_plan()
    lever = plan.lines[0].change.lever
    reads = profile_of("reads", Remedy(("reading rows", "sorting"), 0.5, (lever,), "code"))
    writes = profile_of("writes", Remedy(("reading rows",), 0.256, (lever, "other"), "code"))
    bounded = with_bounds(plan, [reads, writes])
    assert bounded.lines[0].reason == (
        f"{plan.lines[0].reason}; by a profile of the baseline, "
        "at most +50% on reads (reading rows, sorting), at most +26% on writes (reading rows)"
    )
    others = [line for line in plan.lines if line.change.lever != lever]
    assert [line for line in bounded.lines if line.change.lever != lever] == others
    assert [line.change for line in bounded.lines] == [line.change for line in plan.lines]


def test_a_profile_that_says_nothing_of_a_lever_changes_nothing() -> None:
    plan = rich_plan()
    assert with_bounds(plan, [profile_of("reads")]) == plan
