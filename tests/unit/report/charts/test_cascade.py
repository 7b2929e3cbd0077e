"""Parts that add up to a whole: coordinates by hand."""

from __future__ import annotations

import re

import pytest

from pgdyno.report.charts.shares import CascadeBar, cascade
from pgdyno.report.charts.svg import Caption

BARS = [CascadeBar("parse", 1.0, "1 µs", "shade-0"), CascadeBar("execute", 3.0, "3 µs", "shade-1")]


def bars_of(chart: str) -> list[tuple[float, float, float]]:
    found = re.findall(r"<rect\b[^>]*>", chart)
    return [
        tuple(float(re.search(rf'\b{name}="([^"]*)"', one)[1]) for name in ("x", "width", "y"))  # type: ignore[index, misc]
        for one in found
    ]


def test_each_bar_begins_where_the_one_above_ends() -> None:
    chart = str(cascade(Caption("c", "Parts", "Parts of a transaction"), BARS, 4.0, width=900))
    (first, second) = bars_of(chart)
    # 378 is 42 % of 900; 804 is 900 less 96; so a unit is 106.5 px
    assert first == pytest.approx((378, 106.5, 8), abs=0.1)
    assert second == pytest.approx((484.5, 319.5, 32), abs=0.1)
    assert "parse: 1 µs" in chart


def test_parts_beyond_the_whole_still_fit() -> None:
    chart = str(cascade(Caption("c", "Parts", "Parts of a transaction"), BARS, 2.0, width=900))
    x, width, _ = bars_of(chart)[-1]
    assert x + width == pytest.approx(804, abs=0.1)
