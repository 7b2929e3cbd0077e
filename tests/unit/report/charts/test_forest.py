"""Intervals of verdicts as a forest plot."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from tests.golden.synthetic import experiment

from pgdyno.measure.view.figures import forest_figure
from pgdyno.model.experiments.verdict import Decision, Interval
from pgdyno.report.charts.forest import ForestGroup, ForestRow, forest_plot
from pgdyno.report.charts.svg import NARROW, WIDE, Caption


def test_interval_beyond_the_axis_ends_in_an_arrow() -> None:
    row = ForestRow("w", Decision.INCONCLUSIVE, "?", "", "", Interval(0.001, 1.0, 5000.0, 0.95))
    svg = forest_plot(Caption("k", "t", "d"), [ForestGroup("m", "", (row,))], margin=0.02, width=WIDE)
    assert str(svg).count("<polyline") == 2


def test_one_wild_interval_does_not_squeeze_all_others() -> None:
    rows = [ForestRow(str(n), Decision.BETTER, "", "", "", Interval(1.05, 1.1, 1.15, 0.95)) for n in range(5)]
    wild = ForestRow("wild", Decision.INCONCLUSIVE, "", "", "", Interval(0.01, 1.0, 90.0, 0.95))
    svg = forest_plot(Caption("k", "t", "d"), [ForestGroup("m", "", (*rows, wild))], margin=0.02, width=WIDE)
    bars = [e for e in ET.fromstring(str(svg)).iter("line") if e.get("class") == "interval better"]  # noqa: S314
    assert float(bars[0].get("x2") or 0) - float(bars[0].get("x1") or 0) > 10


@pytest.mark.parametrize("width", [WIDE, NARROW])
def test_plot_of_a_verdict_without_an_interval_has_its_texts_only(width: float) -> None:
    row = ForestRow("w", Decision.INCONCLUSIVE, "? inconclusive", "no estimate", "", None)
    svg = forest_plot(Caption("k", "t", "d"), [ForestGroup("m", "", (row,))], margin=0.02, width=width)
    assert "no estimate" in svg
    assert "interval" not in svg


def test_there_is_no_plot_where_nothing_has_an_interval() -> None:
    base = experiment()
    blind = tuple(replace(verdict, interval=None, effect=None) for verdict in base.verdicts)
    assert forest_figure(replace(base, verdicts=blind)) is None
