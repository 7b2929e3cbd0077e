"""The front of two aims: every configuration as a point with both its intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.model.experiments.verdict import Interval
from pgdyno.report.charts.labels import fitted, spread
from pgdyno.report.charts.marks import arm_class, arm_shape, mark
from pgdyno.report.charts.scales import RatioScale, interval_extent, ratio_scale
from pgdyno.report.charts.svg import NARROW, Caption, drawing, line, text

_TOP, _BOTTOM_PX, _LEFT_PX = 30.0, 52.0, 62.0
_RIGHT_PX, _RIGHT_NARROW_PX = 110.0, 78.0  # room for names beside points
_TICK_ROOM_PX, _LABEL_PX = 46.0, 15.0


@dataclass(frozen=True)
class FrontPoint:
    """A configuration with its ratios to the default in both aims. ``arm`` is its place in the experiment."""

    name: str
    arm: int
    across: Interval
    up: Interval
    is_on_front: bool
    title: str


def front_scatter(
    caption: Caption, labels: tuple[str, str], points: Sequence[FrontPoint], *, width: float
) -> Markup:
    """Return the chart; ``labels`` name the aims across and up, with their better direction."""
    height = 400.0 if width > NARROW else 340.0
    right = width - (_RIGHT_PX if width > NARROW else _RIGHT_NARROW_PX)
    bottom = height - _BOTTOM_PX
    across = ratio_scale(_extent([one.across for one in points]), _LEFT_PX, right)
    up = ratio_scale(_extent([one.up for one in points]), bottom, _TOP)
    names = spread([up.place(one.up.point) for one in points], _LABEL_PX, _TOP, bottom)
    return drawing(
        caption,
        width,
        height,
        *_grid(across, up, right, bottom),
        *(part for one in points for part in _cross(one, across, up)),
        *(
            text(
                fitted(one.name, width - across.place(one.across.point) - 10),
                across.place(one.across.point) + 9,
                y - 5,
                "small" if one.is_on_front else "small muted",
            )
            for one, y in zip(points, names, strict=True)
        ),
        text(labels[1], 0, 14, "small muted"),
        text(labels[0], right, bottom + 40, "small muted", "end"),
    )


def _extent(intervals: Sequence[Interval]) -> list[float]:
    return [1.0, *interval_extent([(one.low, one.point, one.high) for one in intervals])]


def _grid(across: RatioScale, up: RatioScale, right: float, bottom: float) -> list[Markup]:
    parts = []
    for tick in across.ticks(_TICK_ROOM_PX * 1.4):
        style = "zero" if math.isclose(tick.place, across.place(1.0)) else "grid"
        parts += [
            line(tick.place, _TOP, tick.place, bottom, style),
            text(tick.label, tick.place, bottom + 18, "tick", "middle"),
        ]
    for tick in up.ticks(_TICK_ROOM_PX * 0.8):
        style = "zero" if math.isclose(tick.place, up.place(1.0)) else "grid"
        parts += [
            line(_LEFT_PX, tick.place, right, tick.place, style),
            text(tick.label, _LEFT_PX - 8, tick.place + 4, "tick", "end"),
        ]
    return parts


def _cross(one: FrontPoint, across: RatioScale, up: RatioScale) -> list[Markup]:
    x, y = across.place(one.across.point), up.place(one.up.point)
    style = f"thread {arm_class(one.arm)}"
    filled = "mark" if one.is_on_front else "mark hollow"
    return [
        line(across.place(one.across.low), y, across.place(one.across.high), y, style),
        line(x, up.place(one.up.low), x, up.place(one.up.high), style),
        mark(arm_shape(one.arm), x, y, 5.5, f"{filled} {arm_class(one.arm)}", one.title),
    ]
