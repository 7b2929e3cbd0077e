"""The waterfall: from the baseline to the whole plan, with one step per layer and one for their overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.base import numbers
from pgdyno.model.experiments.verdict import Interval
from pgdyno.report.charts.marks import fitted, heading
from pgdyno.report.charts.scales import RatioScale, ratio_scale, tick_labels, vertical_grid
from pgdyno.report.charts.svg import NARROW, Caption, box, drawing, line, text

_AXIS_PX, _HEADING_PX = 30.0, 42.0
_TICK_ROOM_PX = 46.0
_BAR_PX = 18.0


@dataclass(frozen=True)
class Step:
    """A bar that begins at ``start``, a ratio to the baseline; ``effect`` is its length as a ratio."""

    label: str
    remark: str
    start: float
    effect: Interval
    style: str  # of the bar: better, worse, equivalent, or whole

    @property
    def end(self) -> float:
        """End of the bar, as a ratio to the baseline."""
        return self.start * self.effect.point


@dataclass(frozen=True)
class Fall:
    """The steps on one workload; the last is the whole plan."""

    workload: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class _Layout:
    """Positions within a row. Units: px; y offsets count from the row's top."""

    plot_start: float
    plot_end: float
    row: float
    label_y: float
    remark_y: float
    bar_y: float
    text_x: float
    anchor: str
    label_room: float


def _layout(width: float) -> _Layout:
    if width <= NARROW:
        return _Layout(8, width - 8, 78, 14, 70, 32, width, "end", width * 0.6)
    return _Layout(256, width - 158, 46, 18, 34, 8, width - 144, "start", 244)


def waterfall(caption: Caption, falls: Sequence[Fall], *, width: float) -> Markup:
    """Return the chart: one bar per step on an axis of relative change, with its interval at its end."""
    layout = _layout(width)
    scale = ratio_scale(
        [
            end
            for fall in falls
            for one in fall.steps
            for end in (one.start, one.start * one.effect.low, one.start * one.effect.high)
        ],
        layout.plot_start,
        layout.plot_end,
    )
    parts: list[Markup] = []
    top = 0.0
    for fall in falls:
        bottom = top + _HEADING_PX + layout.row * len(fall.steps)
        parts += heading(fall.workload, "", width, top + _HEADING_PX - 12)
        parts += vertical_grid(scale, top + _HEADING_PX, bottom, _TICK_ROOM_PX)
        for place, step in enumerate(fall.steps):
            parts += _step(step, layout, scale, top + _HEADING_PX + layout.row * place)
        top = bottom
    return drawing(caption, width, top + _AXIS_PX, *parts, *tick_labels(scale, top + 18, _TICK_ROOM_PX))


def _step(step: Step, layout: _Layout, scale: RatioScale, top: float) -> list[Markup]:
    start, end = scale.place(step.start), scale.place(step.end)
    low, high = (scale.place(step.start * bound) for bound in (step.effect.low, step.effect.high))
    y, middle = top + layout.bar_y, top + layout.bar_y + _BAR_PX / 2
    effect = numbers.change_within(step.effect.point, step.effect.low, step.effect.high)
    bounds = numbers.interval(step.effect)
    return [
        box(min(start, end), y, max(1.5, abs(end - start)), _BAR_PX, f"step {step.style}"),
        line(low, middle, high, middle, "whisker"),
        *(line(at, middle - 4, at, middle + 4, "whisker") for at in (low, high)),
        text(fitted(step.label, layout.label_room), 0, top + layout.label_y),
        text(fitted(step.remark, layout.label_room, 11.5), 0, top + layout.remark_y, "small muted"),
        text(effect, layout.text_x, top + layout.label_y, "strong", layout.anchor),
        text(bounds, layout.text_x, top + layout.remark_y, "small muted", layout.anchor),
    ]
