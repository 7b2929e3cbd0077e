"""The forest plot: the effect and interval of every verdict on one relative axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.model.experiments.verdict import Decision, Interval
from pgdyno.report.charts.marks import decision_mark, fitted, heading
from pgdyno.report.charts.scales import RatioScale, interval_extent, ratio_scale, tick_labels, vertical_grid
from pgdyno.report.charts.svg import NARROW, Caption, box, drawing, line, tag, text

_AXIS_PX = 30.0
_TICK_ROOM_PX = 46.0  # "+100 %" and a gap


@dataclass(frozen=True)
class ForestRow:
    """One verdict. ``effect`` and ``bounds`` are its texts; ``noise`` is the A/A interval, as ratios.

    Without a mark the row is only an interval, without an estimate.
    """

    label: str
    decision: Decision
    decision_text: str
    effect: str
    bounds: str
    interval: Interval | None
    noise: tuple[float, float] | None = None
    has_mark: bool = True


@dataclass(frozen=True)
class ForestGroup:
    """The rows of one metric, under its title; ``hint`` states which direction is better."""

    title: str
    hint: str
    rows: tuple[ForestRow, ...]


@dataclass(frozen=True)
class _Layout:
    """Positions within a row. Units: px; y offsets count from the row's top."""

    width: float
    plot_start: float
    plot_end: float
    row: float
    heading: float
    label_y: float
    sub_y: float
    strip_y: float

    @property
    def is_narrow(self) -> bool:
        return self.plot_start < 100


_NARROW_LAYOUT = _Layout(NARROW, 8, NARROW - 8, 74, 38, 16, 56, 33)


def _layout(width: float) -> _Layout:
    if width <= NARROW:
        return _NARROW_LAYOUT
    return _Layout(width, 216, width - 158, 48, 42, 20, 37, 23)


def forest_plot(caption: Caption, groups: Sequence[ForestGroup], *, margin: float, width: float) -> Markup:
    """Return the plot.

    The band of ``margin`` around no change is shaded. An interval that leaves the axis ends in an arrow head.
    """
    layout = _layout(width)
    scale = ratio_scale(_extent(groups, margin), layout.plot_start, layout.plot_end)
    height = sum(layout.heading + layout.row * len(group.rows) for group in groups)
    parts: list[Markup] = []
    top = 0.0
    for group in groups:
        parts += heading(group.title, group.hint, layout.width, top + layout.heading - 12)
        top += layout.heading
        parts += _background(scale, margin, top, top + layout.row * len(group.rows))
        for row in group.rows:
            parts += _row(row, layout, scale, top)
            top += layout.row
    return drawing(caption, width, height + _AXIS_PX, *parts, *tick_labels(scale, height + 18, _TICK_ROOM_PX))


def _extent(groups: Sequence[ForestGroup], margin: float) -> list[float]:
    """Return the values that the axis must cover; very wide intervals count only in part."""
    rows = [row for group in groups for row in group.rows]
    intervals = interval_extent([(i.low, i.point, i.high) for row in rows if (i := row.interval)])
    return [1 - margin, 1 + margin, *(end for row in rows for end in row.noise or ()), *intervals]


def _background(scale: RatioScale, margin: float, top: float, bottom: float) -> list[Markup]:
    low, high = scale.place(1 - margin), scale.place(1 + margin)
    grid = vertical_grid(scale, top, bottom, _TICK_ROOM_PX)
    return [box(low, top, high - low, bottom - top, "band"), *grid]


def _row(row: ForestRow, layout: _Layout, scale: RatioScale, top: float) -> list[Markup]:
    return [
        *_texts(row, layout, top),
        *_noise(row, scale, top + layout.strip_y),
        *_interval(row, scale, top + layout.strip_y),
    ]


def _texts(row: ForestRow, layout: _Layout, top: float) -> list[Markup]:
    room = layout.width * 0.68 if layout.is_narrow else layout.plot_start - 12
    right = layout.width if layout.is_narrow else layout.plot_end + 14
    anchor = "end" if layout.is_narrow else "start"
    return [
        text(fitted(row.label, room), 0, top + layout.label_y),
        text(row.decision_text, 0, top + layout.sub_y, f"small {row.decision}"),
        text(row.effect, right, top + layout.label_y, "strong", anchor),
        text(row.bounds, right, top + layout.sub_y, "small muted", anchor),
    ]


def _noise(row: ForestRow, scale: RatioScale, middle: float) -> list[Markup]:
    """Return the A/A interval as a thin bracket below the effect."""
    if row.noise is None:
        return []
    low, high = (scale.place(end) for end in row.noise)
    y = middle + 11
    return [
        line(low, y, high, y, "noise"),
        *(line(end, y - 3, end, y + 3, "noise") for end in (low, high)),
    ]


def _interval(row: ForestRow, scale: RatioScale, middle: float) -> list[Markup]:
    if row.interval is None:
        return []
    low, high = scale.place(row.interval.low), scale.place(row.interval.high)
    return [
        line(low, middle, high, middle, f"interval {row.decision}"),
        _end(low, middle, row.decision, -1 if not scale.holds(row.interval.low) else 0),
        _end(high, middle, row.decision, 1 if not scale.holds(row.interval.high) else 0),
        *([decision_mark(row.decision, scale.place(row.interval.point), middle)] if row.has_mark else []),
    ]


def _end(x: float, y: float, decision: Decision, direction: int) -> Markup:
    """Return the end of an interval: a cap, or an arrow head if the interval leaves the axis."""
    if direction == 0:
        return line(x, y - 5, x, y + 5, f"interval {decision}")
    points = f"{x - 7 * direction:.2f},{y - 5:.2f} {x:.2f},{y:.2f} {x - 7 * direction:.2f},{y + 5:.2f}"
    return tag("polyline", points=points, class_=f"interval arrow {decision}")
