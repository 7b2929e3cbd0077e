"""commit_delay: planned for loads that were counted on a scratch server, and never on a running one."""

from __future__ import annotations

import dataclasses

from tests.fix_settings import host_of, server_of

from pgdyno.accelerate.planning import best_grouped
from pgdyno.base.facts import Fact, unknown
from pgdyno.plan import levers
from pgdyno.plan.engine.effective import EffectiveSettings
from pgdyno.plan.engine.planner import plan_one
from pgdyno.plan.engine.resources import Figures, proven_host, resources_of
from pgdyno.plan.levers._contract import PlanContext, PlanLine, Skipped
from pgdyno.postgres.statements import CommitGrouping

SLOW = CommitGrouping("sysbench-read-write", clients=16, commits=1200, flushes=1000, flush_us=1501.0)


def outcome(commits: Fact[CommitGrouping] | None, **changes: str) -> tuple[PlanLine, ...] | Skipped:
    host, server = host_of(), server_of(changes=changes)
    ctx = PlanContext(
        settings=EffectiveSettings(server),
        resources=resources_of(host, server, Figures()),
        host=proven_host(host, server),
        commits=commits,
    )
    return plan_one(levers.load()["commit_delay"], ctx)


def reason(commits: Fact[CommitGrouping] | None, **changes: str) -> str:
    found = outcome(commits, **changes)
    assert isinstance(found, Skipped)
    return found.reason


def counted(**changes: float) -> Fact[CommitGrouping]:
    return Fact(dataclasses.replace(SLOW, **changes), "a test")  # type: ignore[arg-type]


def test_half_a_flush_and_half_of_the_clients() -> None:
    lines = outcome(counted())
    assert not isinstance(lines, Skipped)
    assert {line.change.key: line.change.value for line in lines} == {
        "commit_delay": "750",
        "commit_siblings": "8",
    }
    assert lines[0].reason == (
        "sysbench-read-write, 16 clients: 1.2 commits share a flush, which takes 1501 µs for 8 kB"
    )
    assert all(line.touches_wakeups for line in lines)


def test_commits_that_meet_by_themselves_do_not_wait() -> None:
    assert reason(counted(flushes=800)) == (
        "sysbench-read-write, 16 clients: 1.5 commits share a flush, without waiting"
    )


def test_a_flush_that_takes_nothing_cannot_be_saved() -> None:
    assert reason(counted(flush_us=0.6)) == "a flush takes only 0.6 µs: nothing to gain"


def test_a_delay_stays_below_the_settings_maximum() -> None:
    lines = outcome(counted(flush_us=900_000.0))
    assert not isinstance(lines, Skipped)
    assert lines[0].change.value == "100000"


def test_a_running_server_is_told_how_to_try_it() -> None:
    assert reason(None) == (
        "not changed on a running server: commits would take longer. With 8 or more writing sessions and a "
        "slow "
        "disk, try half of the time that pg_test_fsync reports"
    )


def test_what_was_chosen_and_what_is_not_known_stay() -> None:
    assert reason(counted(), commit_delay="10") == "explicitly set to 10 µs"
    assert reason(unknown("4 clients rarely commit at the same time", "a test")) == (
        "4 clients rarely commit at the same time"
    )


def test_the_workload_that_shares_flushes_most_decides() -> None:
    few, many = counted(), counted(commits=5000)
    silent: Fact[CommitGrouping] = unknown("it does not write", "a test")
    assert best_grouped([silent, few, many]) == many
    assert best_grouped([silent]) == silent
    assert best_grouped([]) == unknown(
        "no workload was measured", "xact_commit and flushes of the WAL under the workload"
    )
