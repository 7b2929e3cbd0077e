"""The account as text and as a page: it adds up, and no name can do anything."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.profile.records.profile_record import (
    AccountGroup,
    AccountLine,
    KernelEntry,
    Remedy,
    StackCount,
    StatementTime,
    Time,
    TransactionProfile,
)
from pgdyno.profile.view.profile_page import render_profiles

HOSTILE = "<script>alert(1)</script>"


def line(group: AccountGroup, name: str, *by_cycle: float, kernel_us: float | None = None) -> AccountLine:
    mean = sum(by_cycle) / len(by_cycle)
    return AccountLine(group, name, Time(mean, mean - 1, mean + 1), "made up", by_cycle, kernel_us)


PROFILE = TransactionProfile(
    variant="default",
    workload="bank",
    sessions=4,
    seconds=16.0,
    transactions_per_s=4000.0,
    latency=Time(1000.0, 990.0, 1010.0),
    lines=(
        line(AccountGroup.SERVER, "planning", 190.0, 210.0, kernel_us=5.0),
        line(AccountGroup.SERVER, "sorting", 2.0, 4.0, kernel_us=1.0),
        line(AccountGroup.SERVER, "parsing", 1.0, 1.0, kernel_us=0.0),
        line(AccountGroup.CLIENT, "load generator's CPU time", 700.0, 700.0),
    ),
    kernel=(KernelEntry("sendto", Time(6.0)),),
    statements=(StatementTime(f"SELECT '{HOSTILE}'" + " x" * 100, 1.0, 12.34, 5.0, 1.0, 2.0, 0.0),),
    background_us=3.0,
    cpu_share=0.5,
    sampling_slowdown=Time(20.0, 10.0, 30.0),
    advice=(Remedy(("planning", "parsing"), 0.25, ("plan_cache_mode",), "statements are planned"),),
    remarks=("no trace",),
    stacks=(StackCount(("main", "planner"), 3),),
)


def test_a_page_shows_names_as_they_are_and_runs_nothing() -> None:
    page = render_profiles((replace(PROFILE, variant=HOSTILE, workload=HOSTILE),))
    assert "<script>" not in page
    assert page.count("&lt;script&gt;") > 3
    assert page.count("<svg") == 4 + len(AccountGroup)  # two charts in two widths, and the legend
    assert "default-src 'none'" in page


def test_a_page_begins_with_the_statement_that_takes_the_time() -> None:
    slow = StatementTime("SELECT 1", 1.0, 0.0, 900.0, 4.0, 9.0, 0.0, name="slow", rows_read=200_000.0)
    page = render_profiles((replace(PROFILE, statements=(slow,)),))
    answer = "time is slow, which reads 200,000 rows to return 4."
    assert page.index("<h1>") < page.index(answer) < page.index("4,000 transactions per second")
    assert page.count(answer) == 1


def test_two_profiles_are_compared_first() -> None:
    page = render_profiles((PROFILE, replace(PROFILE, variant="generic")))
    assert page.index('id="compared"') < page.index('id="profile-1"') < page.index('id="profile-2"')
