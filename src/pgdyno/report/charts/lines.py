"""Values with intervals over a few places, such as client counts: small multiples on one scale.

Places are evenly spaced: they are categories, not values on a numeric axis. At each place, variants are drawn
side by side, which keeps their intervals from hiding each other.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.model.experiments.verdict import Decision
from pgdyno.report.charts.marks import BOLD_PX, arm_class, arm_shape, fitted, mark
from pgdyno.report.charts.scales import (
    LinearScale,
    RatioScale,
    horizontal_grid,
    interval_extent,
    ratio_scale,
    value_scale,
)
from pgdyno.report.charts.svg import NARROW, Caption, box, drawing, line, tag, text

_MOST_COLUMNS = 3
_GAP_PX, _RIGHT_PX = 24.0, 4.0
_TITLE_PX, _REFERENCE_PX, _AXIS_PX = 26.0, 18.0, 46.0
_PLOT_PX = 180.0
_SIGN_PX = 14.0  # for the sign above the highest interval
_TICK_ROOM_PX = 30.0
_CHARACTER_PX = 7.0  # of a tick's label
_RADIUS_PX, _CAP_PX = 3.8, 3.0
_SPACING_PX, _SPACING_WITH_SIGNS_PX = 9.0, 15.0  # largest distance between variants at a place
_SHARE_OF_STEP = 0.8  # largest share of the distance between places that a place's variants take
_ROOM_PX, _ROOM_WITH_SIGNS_PX = 8.0, 12.0  # smallest distance between variants at a place


@dataclass(frozen=True)
class LinePoint:
    """One value. ``place`` is the index of the axis label; ``bounds`` are the ends of its interval.

    ``title`` is its tooltip. ``sign`` is drawn above the interval and is the symbol of ``decision``.
    """

    place: int
    value: float
    bounds: tuple[float, float] | None
    title: str
    decision: Decision | None = None
    sign: str = ""


@dataclass(frozen=True)
class Line:
    """One variant. ``arm`` is its index among the arms, which sets its colour and shape."""

    arm: int
    points: tuple[LinePoint, ...]


@dataclass(frozen=True)
class Panel:
    """One of the small multiples."""

    title: str
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Reference:
    """A vertical line. ``place`` may be between two labels, or half a step beyond the first or last."""

    place: float
    label: str


@dataclass(frozen=True)
class LineChart:
    """All panels; ``axis`` is the title of the axis.

    With an equivalence ``margin`` the values are ratios, shown as changes; without it they are amounts.
    """

    panels: tuple[Panel, ...]
    labels: tuple[str, ...]
    axis: str
    margin: float | None = None
    reference: Reference | None = None

    @property
    def points(self) -> Iterator[LinePoint]:
        """All points of all panels."""
        return (point for panel in self.panels for one in panel.lines for point in one.points)

    @property
    def has_signs(self) -> bool:
        """Whether any point has a sign."""
        return any(point.sign for point in self.points)


@dataclass(frozen=True)
class _Plot:
    """The area of one panel's values, and the distances between places and variants. Units: px."""

    left: float
    right: float
    top: float
    scale: LinearScale | RatioScale
    step: float
    spacing: float
    variants: int

    @property
    def bottom(self) -> float:
        return self.top + _PLOT_PX

    def middle(self, place: float) -> float:
        return self.left + (place + 0.5) * self.step

    def x(self, place: int, order: int) -> float:
        return self.middle(place) + (order - (self.variants - 1) / 2) * self.spacing


def line_chart(caption: Caption, chart: LineChart, *, width: float) -> Markup:
    """Return the chart. All panels have the same scale, which makes heights comparable."""
    left = 14 + _CHARACTER_PX * max(len(tick.label) for tick in _scale(chart, 0).ticks(_TICK_ROOM_PX))
    columns = _columns(chart, width - left, most=_MOST_COLUMNS if width > NARROW else 1)
    head = _TITLE_PX + (_REFERENCE_PX if chart.reference else 0)
    row_px = head + _PLOT_PX + _AXIS_PX
    panel_px = _panel_px(width - left, columns)
    parts: list[Markup] = []
    for number, panel in enumerate(chart.panels):
        row, column = divmod(number, columns)
        start, top = left + column * (panel_px + _GAP_PX), row * row_px + head
        step, spacing = panel_px / len(chart.labels), _spacing(chart, panel_px)
        plot = _Plot(start, start + panel_px, top, _scale(chart, top), step, spacing, len(panel.lines))
        parts += _panel(panel, chart, plot, has_ticks=column == 0)
    return drawing(caption, width, row_px * math.ceil(len(chart.panels) / columns), *parts)


def _scale(chart: LineChart, top: float) -> LinearScale | RatioScale:
    """Return the scale of a row of panels, with room for signs above the highest interval."""
    points = list(chart.points)
    ends = interval_extent([(p.bounds[0], p.value, p.bounds[1]) for p in points if p.bounds])
    values = [*(point.value for point in points), *ends]
    start, end = top + _PLOT_PX, top + (_SIGN_PX if chart.has_signs else 0)
    if chart.margin is None:
        return value_scale(values, start, end)
    return ratio_scale([*values, 1 - chart.margin, 1 + chart.margin], start, end)


def _columns(chart: LineChart, width: float, *, most: int) -> int:
    """Return how many panels fit side by side without overlapping variants."""
    room = _ROOM_WITH_SIGNS_PX if chart.has_signs else _ROOM_PX
    for columns in range(min(most, len(chart.panels)), 1, -1):
        if _spacing(chart, _panel_px(width, columns)) >= room:
            return columns
    return 1


def _panel_px(width: float, columns: int) -> float:
    return (width - _RIGHT_PX - (columns - 1) * _GAP_PX) / columns


def _spacing(chart: LineChart, panel_px: float) -> float:
    """Return the distance between variants at a place, in px."""
    variants = max((len(panel.lines) for panel in chart.panels), default=1)
    most = _SPACING_WITH_SIGNS_PX if chart.has_signs else _SPACING_PX
    return min(most, _SHARE_OF_STEP * panel_px / len(chart.labels) / max(1, variants))


def _panel(panel: Panel, chart: LineChart, plot: _Plot, *, has_ticks: bool) -> list[Markup]:
    head = plot.top - (_REFERENCE_PX if chart.reference else 0)
    return [
        text(fitted(panel.title, plot.right - plot.left, BOLD_PX), plot.left, head - 10, "strong"),
        *_background(chart, plot, has_ticks=has_ticks),
        *(_reference(chart.reference, plot) if chart.reference else ()),
        *_places(chart, plot),
        *(part for order, one in enumerate(panel.lines) for part in _line(one, order, plot)),
    ]


def _background(chart: LineChart, plot: _Plot, *, has_ticks: bool) -> list[Markup]:
    """Return the equivalence band, the grid, and in the leftmost panel of a row the tick labels."""
    parts = []
    if chart.margin is not None:
        high, low = plot.scale.place(1 + chart.margin), plot.scale.place(1 - chart.margin)
        parts.append(box(plot.left, high, plot.right - plot.left, low - high, "band"))
    return parts + horizontal_grid(plot.scale, plot.left, plot.right, _TICK_ROOM_PX, has_labels=has_ticks)


def _reference(reference: Reference, plot: _Plot) -> list[Markup]:
    x = plot.middle(reference.place)
    room = _CHARACTER_PX * len(reference.label) / 2
    anchor = "start" if x - room < plot.left else "end" if x + room > plot.right else "middle"
    return [
        line(x, plot.top - 4, x, plot.bottom, "estimate"),
        text(reference.label, x, plot.top - 9, "small muted", anchor),
    ]


def _places(chart: LineChart, plot: _Plot) -> list[Markup]:
    """Return the labels of the places, as many as fit, and the axis title."""
    longest = max(len(label) for label in chart.labels)
    every = math.ceil((_CHARACTER_PX * longest + 6) / plot.step)
    labels = [
        text(label, plot.middle(place), plot.bottom + 18, "tick", "middle")
        for place, label in enumerate(chart.labels)
        if place % every == 0
    ]
    return [*labels, text(chart.axis, (plot.left + plot.right) / 2, plot.bottom + 35, "tick", "middle")]


def _line(one: Line, order: int, plot: _Plot) -> list[Markup]:
    """Return a variant's points; points at neighbouring places are joined."""
    runs: list[list[LinePoint]] = []
    for point in one.points:
        if runs and runs[-1][-1].place == point.place - 1:
            runs[-1].append(point)
        else:
            runs.append([point])
    return [
        *(_thread(run, one.arm, order, plot) for run in runs if len(run) > 1),
        *(part for point in one.points for part in _point(point, one.arm, order, plot)),
    ]


def _thread(run: Sequence[LinePoint], arm: int, order: int, plot: _Plot) -> Markup:
    """Return the line through neighbouring points.

    At a place it is level across all variants, so every variant's line changes between the same two x.
    With lines from mark to mark, the leftmost variant would look best on every rise.
    """
    corners = []
    for point in run:
        y = plot.scale.place(point.value)
        left, right = plot.x(point.place, 0), plot.x(point.place, plot.variants - 1)
        corners += [
            (plot.x(point.place, order) if point is run[0] else left, y),
            (plot.x(point.place, order) if point is run[-1] else right, y),
        ]
    return _polyline(corners, f"thread {arm_class(arm)}")


def _point(point: LinePoint, arm: int, order: int, plot: _Plot) -> list[Markup]:
    """Return an interval, its mark (hollow if inconclusive) and its sign."""
    x, y, class_ = plot.x(point.place, order), plot.scale.place(point.value), arm_class(arm)
    parts = [_interval(x, point.bounds, plot.scale, class_)] if point.bounds else []
    hollow = "hollow " if point.decision is Decision.INCONCLUSIVE else ""
    parts.append(mark(arm_shape(arm), x, y, _RADIUS_PX, f"mark {hollow}{class_}", point.title))
    if point.sign and plot.spacing >= _ROOM_WITH_SIGNS_PX:
        highest = min(y - _RADIUS_PX, plot.scale.place(point.bounds[1]) if point.bounds else y)
        parts.append(text(point.sign, x, highest - 4, f"small sign {point.decision}", "middle"))
    return parts


def _interval(x: float, bounds: tuple[float, float], scale: LinearScale | RatioScale, class_: str) -> Markup:
    """Return a bar with a cap at each end that is on the axis; an end without a cap is beyond the axis."""
    low, high = bounds
    bottom, top = scale.place(low), scale.place(high)
    corners: Sequence[tuple[float, float]] = (
        *(((x - _CAP_PX, bottom), (x + _CAP_PX, bottom)) if scale.holds(low) else ()),
        *((x, bottom), (x, top)),
        *(((x - _CAP_PX, top), (x + _CAP_PX, top)) if scale.holds(high) else ()),
    )
    return _polyline(corners, f"bar {class_}")


def _polyline(corners: Sequence[tuple[float, float]], class_: str) -> Markup:
    return tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in corners), class_=class_)
