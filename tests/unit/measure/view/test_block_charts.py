"""Arms' own values over the blocks."""

from __future__ import annotations

import re

import pytest

from pgdyno.measure.view.block_charts import value_chart
from pgdyno.measure.view.series import ArmSeries, TrialValues, ValuePoint
from pgdyno.model.experiments.metric import METRICS, THROUGHPUT
from pgdyno.report.charts.svg import NARROW, WIDE, Caption

CAPTION = Caption("values", "executions/s", "one variant")
NARROWEST_DIGIT_PX = 6.0  # in a label of 12 px


@pytest.mark.parametrize("width", [NARROW, WIDE])
@pytest.mark.parametrize("highest", [9.0, 9e4, 9e7, 9e10])
def test_labels_of_large_values_have_room_at_the_left(highest: float, width: float) -> None:
    points = tuple(ValuePoint(TrialValues(n, n, 1, None), highest * n / 5) for n in range(1, 6))
    chart = str(value_chart(CAPTION, [ArmSeries("default", points)], METRICS[THROUGHPUT], width=width))
    labels = re.findall(r'<text x="([0-9.]+)"[^>]*text-anchor="end"[^>]*>([0-9,.]+)</text>', chart)
    assert len(labels) > 2
    assert all(float(x) >= NARROWEST_DIGIT_PX * len(label) for x, label in labels), labels
