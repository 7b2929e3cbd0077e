"""Several machines in words, and as a forest plot of characters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.golden.synthetic import READ_ONLY
from tests.golden.synthetic_fleet import fleet, given, on_machine

from pgdyno.model.experiments.fleet import Fleet
from pgdyno.model.experiments.verdict import Decision, Interval
from pgdyno.results.fleets.fleet import combine
from pgdyno.results.fleets.fleet_text import fleet_text

NBSP = "\N{NO-BREAK SPACE}"


@pytest.fixture(scope="module")
def five() -> Fleet:
    return combine(given(fleet()))


def lines(found: Fleet, beginning: str) -> list[str]:
    return [line for line in fleet_text(found).replace(NBSP, " ").split("\n") if line.startswith(beginning)]


def test_every_line_of_a_forest_plot_is_to_one_scale(five: Fleet) -> None:
    """True effects: A 1.19, B 1.24, C 1.16. Points lie right of no change, in the order of the effects."""
    a, b, c, of_all = (lines(five, f"  {label} ")[0] for label in ("A", "B", "C", "all machines"))
    assert len({row.index("┊") for row in (a, b, c, of_all)}) == 1
    assert a.index("┊") < c.index("●") < a.index("●") < b.index("●")
    assert of_all.index("├") < of_all.index("●") < of_all.index("┤")


def test_an_interval_that_leaves_the_axis_ends_in_an_arrow(five: Fleet) -> None:
    first = five.comparisons[0]
    wild = replace(first, prediction=Interval(1e-6, 1.2, 1e6, 0.95))
    (line,) = lines(replace(five, comparisons=(wild,)), "  the next machine")
    assert "◀" in line
    assert "▶" in line


def test_occasions_of_one_machine_stand_below_it() -> None:
    first = on_machine(1, 1.19, 1.0)
    found = combine(given([first, on_machine(2, 1.21, 1.0, host=first.host)]))
    text = fleet_text(found).replace(NBSP, " ")
    assert "\n    2026-11-21 09:30  +18.8 %" in text
    assert "\n    2026-11-22 09:30  +20.7 %" in text
    assert "all machines" not in text.partition("Other metrics")[0]


def test_what_is_left_out_and_not_known_is_in_the_text() -> None:
    first, second, third = fleet(3)
    other = replace(third, scales={READ_ONLY: 400, "sysbench-read-write": 4}, generators={})
    text = fleet_text(combine(given([first, second, other]))).replace(NBSP, " ")
    assert "\nNot recorded in all experiments, possibly different: load generator\n" in text
    assert (
        "\nNot combined\n  C (on-3.zip), plan against default on sysbench-read-only: scale of the data set "
        "is 400, 4 on A (on-1.zip)\n"
    ) in text


def test_facts_are_shown_where_machines_differ_in_them(five: Fleet) -> None:
    assert lines(five, "The machines") == [
        "The machines  processor         CPUs  memory  kernel          PostgreSQL"
    ]
    assert lines(five, "B  ") == [
        "B             Example CPU 9002  8     32 GB   6.1.0-40-amd64  18.6",
        "B                on-2.zip  on-2        2026-11-22 09:30",
    ]


def test_the_verdict_of_all_machines_is_that_of_the_comparison(five: Fleet) -> None:
    assert five.comparisons[0].verdict.decision is Decision.BETTER
    assert lines(five, "  all machines")[0].endswith("✓ better")
