"""The rate of a step over time: a strip per variant, a thin line per round, stalls shaded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from markupsafe import Markup

from pgdyno.base import numbers
from pgdyno.model.experiments.step_record import Stall
from pgdyno.report.charts.marks import BOLD_PX, arm_class, fitted
from pgdyno.report.charts.scales import LinearScale, horizontal_grid, tick_labels
from pgdyno.report.charts.svg import NARROW, Caption, box, drawing, group, tag, text

_LEFT_PX, _BOTTOM_PX = 58.0, 40.0
_STRIP_PX, _HEADING_PX = 58.0, 22.0
_TICK_ROOM_PX = 26.0
_TIME_ROOM_PX = 70.0
_POINT_PX = 6.0  # denser points would blur the line and make the page large


@dataclass(frozen=True)
class RatePoint:
    """The mean rate over ``length_s`` from ``start_s`` on."""

    start_s: float
    length_s: float
    rate: float


@dataclass(frozen=True)
class RateLine:
    """One round."""

    round: int
    points: tuple[RatePoint, ...]
    stalls: tuple[Stall, ...]


@dataclass(frozen=True)
class RateStrip:
    """One variant. ``arm`` is its index among the arms, which sets its colour."""

    variant: str
    arm: int
    lines: tuple[RateLine, ...]


def rate_chart(caption: Caption, strips: Sequence[RateStrip], *, width: float) -> Markup:
    """Return the chart. All strips have the same axes, which makes heights and lengths comparable."""
    right = width - 8
    most = max((p.rate for s in strips for one in s.lines for p in one.points), default=1.0)
    longest_s = max((p.start_s + p.length_s for s in strips for r in s.lines for p in r.points), default=1.0)
    times = LinearScale(0.0, longest_s or 1.0, _LEFT_PX, right)
    height = (_STRIP_PX + _HEADING_PX) * len(strips) + _BOTTOM_PX
    parts: list[Markup] = []
    for order, strip in enumerate(strips):
        top = order * (_STRIP_PX + _HEADING_PX) + _HEADING_PX
        rates = LinearScale(0.0, most * 1.05 or 1.0, top + _STRIP_PX, top)
        parts += _strip(strip, times, rates, right)
    return drawing(caption, width, height, *parts, *_time_axis(times, height - _BOTTOM_PX, width))


def binned(points: Sequence[RatePoint], most: int) -> list[RatePoint]:
    """Return at most ``most`` points, each the mean of the same number of successive points."""
    size = max(1, ceil(len(points) / max(1, most)))
    return [_mean(points[start : start + size]) for start in range(0, len(points), size)]


def _mean(points: Sequence[RatePoint]) -> RatePoint:
    length_s = sum(point.length_s for point in points)
    done = sum(point.rate * point.length_s for point in points)
    return RatePoint(points[0].start_s, length_s, done / length_s if length_s else 0.0)


def _strip(strip: RateStrip, times: LinearScale, rates: LinearScale, right: float) -> list[Markup]:
    name = fitted(strip.variant, right - _LEFT_PX, BOLD_PX)
    most = int((right - _LEFT_PX) / _POINT_PX)
    return [
        text(name, _LEFT_PX, rates.end - 6, f"name {arm_class(strip.arm)}"),
        *horizontal_grid(rates, _LEFT_PX, right, _TICK_ROOM_PX),
        *(_stall(stall, one.round, times, rates) for one in strip.lines for stall in one.stalls),
        *(_trace(strip, one, most, times, rates) for one in strip.lines if one.points),
    ]


def _trace(strip: RateStrip, one: RateLine, most: int, times: LinearScale, rates: LinearScale) -> Markup:
    """Return a round's line; every point is in the middle of its interval."""
    points = " ".join(
        f"{times.place(p.start_s + p.length_s / 2):.1f},{rates.place(p.rate):.1f}"
        for p in binned(one.points, most)
    )
    trace = tag("polyline", points=points, class_=f"trace {arm_class(strip.arm)}")
    return group(tag("title", f"{strip.variant}, round {one.round}"), trace)


def _stall(stall: Stall, round_: int, times: LinearScale, rates: LinearScale) -> Markup:
    start, end = times.place(stall.start_s), times.place(stall.end_s)
    words = f"round {round_}, {numbers.duration(stall.end_s - stall.start_s)}: {stall.cause}: {stall.why}"
    shade = box(start, rates.end, max(1.5, end - start), rates.start - rates.end, "stall")
    return group(tag("title", words), shade)


def _time_axis(times: LinearScale, floor: float, width: float) -> list[Markup]:
    room = _TIME_ROOM_PX if width > NARROW else _TIME_ROOM_PX * 0.7
    title = text("seconds", (times.start + times.end) / 2, floor + 35, "tick", "middle")
    return [*tick_labels(times, floor + 18, room), title]
