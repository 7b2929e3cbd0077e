"""A profile on a terminal."""

from __future__ import annotations

from dataclasses import replace

from tests.unit.profile.view.test_profile_page import PROFILE

from pgdyno.profile.records.profile_record import (
    Time,
)
from pgdyno.profile.view.profile_page import render_profiles
from pgdyno.profile.view.profile_text import (
    account_table,
    advice_lines,
    comparison_table,
    headline,
    notes,
)


def test_the_headline_says_how_much_is_known() -> None:
    assert headline(PROFILE) == (
        "default, bank, 4 sessions: 4,000 transactions per second, 1.00 ms each; "
        "the server's CPUs are 50% busy; 10% is not accounted for"
    )
    longer = replace(PROFILE, latency=Time(800.0), cpu_share=None)
    assert headline(longer).endswith("800 µs each; 13% is counted twice")


def test_nothing_has_no_sign() -> None:
    known = replace(PROFILE, latency=Time(sum(one.time.us for one in PROFILE.lines) - 0.001))
    assert headline(known).endswith("0% is not accounted for")
    assert account_table(known).rows[-2] == ("not accounted for", "0.0", "–", "0.0%", "–")
    assert ">-0" not in render_profiles((known,))


def test_lines_are_in_the_order_of_their_groups_and_short_ones_are_added_up() -> None:
    assert account_table(PROFILE).rows == (
        ("client: load generator's CPU time", "700.0", "699.0 … 701.0", "70.0%", "–"),
        ("server: planning", "200.0", "199.0 … 201.0", "20.0%", "5.0"),
        ("server: others", "4.0", "–", "0.4%", "1.0"),
        ("not accounted for", "96.0", "–", "9.6%", "–"),
        ("a transaction", "1,000.0", "990.0 … 1,010.0", "100.0%", "–"),
    )


def test_a_comparison_has_the_difference_of_each_line_with_its_interval() -> None:
    without = tuple(one for one in PROFILE.lines if one.name != "planning")
    generic = replace(PROFILE, variant="generic", lines=without, latency=Time(800.0))
    rows = {row[0]: row[1:] for row in comparison_table(PROFILE, generic).rows}
    # Two cycles, 190 and 210 less: mean -200, t(1) 12.706, standard error 10.
    assert rows["server: planning"] == ("200.0", "–", "-200.0", "-327.1 … -72.9")
    assert rows["a transaction"] == ("1,000.0", "800.0", "-200.0", "–")


def test_notes_say_where_lines_come_from_and_the_cost_of_sampling() -> None:
    slower = "Stack sampling changed the latency by +20 µs (10.0 … 30.0)"
    assert [*notes(PROFILE)] == [
        "Sources: server, client: made up",
        f"{slower}; CPU time and run queue time are from windows without sampling",
        "The server's other processes used 3.0 µs of CPU time per transaction",
        "no trace",
    ]
    assert [*advice_lines(PROFILE)] == [
        "At most +25%: statements are planned (plan_cache_mode). Lines concerned: planning, parsing"
    ]
