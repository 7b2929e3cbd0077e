"""Several machines as a page."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.golden.synthetic_fleet import fleet, given

from pgdyno.results.fleets.fleet import combine
from pgdyno.results.fleets.fleet_report import render_fleet


@pytest.fixture(scope="module")
def page() -> str:
    return render_fleet(combine(given(fleet())))


def test_each_comparison_has_a_forest_plot_with_all_machines_and_the_next_one(page: str) -> None:
    plots = re.findall(r'<svg class="chart wide".*?</svg>', page, re.DOTALL)
    assert len(plots) == 2
    for plot in plots:
        for label in ("A", "B", "C", "D", "E", "all machines", "the next machine"):
            assert f">{label}</text>" in plot
        assert ">prediction</text>" in plot


def test_the_next_machine_has_an_interval_and_no_estimate(page: str) -> None:
    plot = re.findall(r'<svg class="chart wide".*?</svg>', page, re.DOTALL)[0]
    assert plot.count('class="mark ') == 6
    assert len(re.findall(r'<line [^>]*class="interval (?:better|inconclusive)"', plot)) == 3 * 7


def test_the_numbers_stand_behind_the_plot(page: str) -> None:
    assert page.count("Numbers behind this chart") == 2
    assert page.count("Other metrics") >= 2


def test_names_from_a_bundle_are_text() -> None:
    first, second = fleet(2)
    both = [replace(one, baseline=one.baseline) for one in (first, second)]
    page = render_fleet(combine(given(both, ["a<b", "c&d"])))
    assert "a&lt;b" in page
    assert "c&amp;d" in page
    assert "a<b" not in page
