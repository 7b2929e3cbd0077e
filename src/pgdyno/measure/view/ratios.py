"""Chart of variant/baseline in every block, grouped by round: both levels of replication."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.base import numbers
from pgdyno.measure.view.rounds_chart import RoundColumns, round_columns
from pgdyno.measure.view.series import RatioPoint
from pgdyno.model.experiments.verdict import Interval
from pgdyno.report.charts.marks import arm_class, arm_shape, mark, spread
from pgdyno.report.charts.scales import RatioScale, horizontal_grid, ratio_scale
from pgdyno.report.charts.svg import NARROW, Caption, box, drawing, line, text

_TOP, _BOTTOM_PX = 12.0, 46.0
_TICK_ROOM_PX = 34.0
_LEFT_PX = 58.0
_LABEL_PX = 76.0  # "+3,900 %" in bold, beside the estimate


@dataclass(frozen=True)
class RatioChart:
    """The chart's data; ``estimate`` is None without an interval, ``margin`` is the equivalence margin."""

    points: tuple[RatioPoint, ...]
    estimate: Interval | None
    margin: float
    arm: int  # the variant's index among the arms: its colour and shape


def ratio_chart(caption: Caption, chart: RatioChart, *, width: float) -> Markup:
    """Return the chart: a point per block (hollow if void), a bar per round at its mean.

    Void blocks do not extend the axis, because they do not count; those outside it are drawn at its ends.
    """
    height = 250.0 if width > NARROW else 230.0
    right = _LABEL_PX if width > NARROW else 8.0
    columns = round_columns([p.trial for p in chart.points], _LEFT_PX, width - right)
    scale = ratio_scale(_extent(chart), height - _BOTTOM_PX, _TOP)
    return drawing(
        caption,
        width,
        height,
        *columns.background(_TOP, height - _BOTTOM_PX),
        *_levels(chart, scale, width - right),
        *horizontal_grid(scale, _LEFT_PX, width - right, _TICK_ROOM_PX),
        *_means(chart, columns, scale),
        *(_point(point, columns, scale, chart.arm) for point in chart.points),
        *columns.axis(height - _BOTTOM_PX),
        *(_estimate_label(chart, scale, width, height) if width > NARROW else ()),
    )


def _extent(chart: RatioChart) -> list[float]:
    counted = [point.ratio for point in chart.points if point.trial.void is None]
    estimate = [chart.estimate.low, chart.estimate.high] if chart.estimate else []
    return [*counted, *estimate, 1 - chart.margin, 1 + chart.margin]


def _levels(chart: RatioChart, scale: RatioScale, right: float) -> list[Markup]:
    """Return the equivalence band and the estimate's interval, behind the points."""
    high, low = scale.place(1 + chart.margin), scale.place(1 - chart.margin)
    parts = [box(_LEFT_PX, high, right - _LEFT_PX, low - high, "band")]
    if chart.estimate:
        top, bottom = scale.place(chart.estimate.high), scale.place(chart.estimate.low)
        middle = scale.place(chart.estimate.point)
        parts += [
            box(_LEFT_PX, top, right - _LEFT_PX, bottom - top, "estimate-band"),
            line(_LEFT_PX, middle, right, middle, "estimate"),
        ]
    return parts


def _means(chart: RatioChart, columns: RoundColumns, scale: RatioScale) -> list[Markup]:
    """Return a bar at every round's geometric mean, over the blocks that count."""
    parts = []
    for column in columns.columns:
        logs = [
            math.log(point.ratio)
            for point in chart.points
            if point.trial.void is None and point.trial.round == column.round
        ]
        if logs:
            y = scale.place(math.exp(statistics.fmean(logs)))
            parts.append(line(column.start + 3, y, column.end - 3, y, f"mean {arm_class(chart.arm)}"))
    return parts


def _point(point: RatioPoint, columns: RoundColumns, scale: RatioScale, arm: int) -> Markup:
    trial = point.trial
    title = f"round {trial.round}, block {trial.block}: {numbers.change(point.ratio)}"
    if trial.void:
        title += f" (void: {trial.void})"
    class_ = f"mark void {arm_class(arm)}" if trial.void else f"mark {arm_class(arm)}"
    shape = arm_shape(arm)
    if not scale.holds(point.ratio):
        shape = "up" if point.ratio > 1 else "down"  # an arrow head: the point is outside the axis
    return mark(shape, columns.place(trial), scale.place(point.ratio), 4.5, class_, title)


def _estimate_label(chart: RatioChart, scale: RatioScale, width: float, height: float) -> Sequence[Markup]:
    """Return the estimate's figure at the right end of its line."""
    if chart.estimate is None:
        return ()
    digits = numbers.percent_digits(chart.estimate.low, chart.estimate.high)
    (y,) = spread([scale.place(chart.estimate.point)], 14, _TOP + 6, height - _BOTTOM_PX - 4)
    return (text(numbers.change(chart.estimate.point, digits), width - _LABEL_PX + 8, y + 4, "strong"),)
