"""The curve of a search: every trial's gain over the default, and the incumbent's gain as steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.model.tuning.tuning import TrialState
from pgdyno.report.charts.marks import mark
from pgdyno.report.charts.scales import RatioScale, horizontal_grid, ratio_scale
from pgdyno.report.charts.svg import NARROW, Caption, drawing, tag, text

_TOP, _BOTTOM_PX, _LEFT_PX, _RIGHT_PX = 12.0, 66.0, 58.0, 8.0
_FAILED_PX = 12.0  # from the plot's end down to marks of trials without a figure
_TICK_ROOM_PX, _LABEL_PX = 34.0, 26.0
_MARKS = {
    TrialState.WON: ("circle", "mark arm-1"),
    TrialState.LOST: ("down", "mark hollow arm-0"),
    TrialState.CLOSE: ("diamond", "mark hollow arm-0"),
    TrialState.RUNNING: ("diamond", "mark hollow arm-0"),
    TrialState.FAILED: ("plus", "mark arm-2"),
    TrialState.OVER_LIMIT: ("plus", "mark arm-3"),
    TrialState.REFUSED: ("square", "mark hollow arm-2"),
}


@dataclass(frozen=True)
class CurvePoint:
    """One trial.

    ``ratio`` is its throughput relative to the default's, None if it has no figure; ``best`` is the
    incumbent's after this trial. ``title`` is the tooltip.
    """

    number: int
    ratio: float | None
    best: float
    state: TrialState
    title: str


def state_mark(state: TrialState, x: float, y: float, title: str | None = None) -> Markup:
    """Return the mark of a trial in this state."""
    shape, class_ = _MARKS[state]
    return mark(shape, x, y, 4.5, class_, title)


def search_curve(caption: Caption, points: Sequence[CurvePoint], *, width: float) -> Markup:
    """Return the chart. Trials without a figure are drawn below the axis."""
    height = 270.0 if width > NARROW else 250.0
    bottom, right = height - _BOTTOM_PX, width - _RIGHT_PX
    scale = ratio_scale([value for one in points for value in (one.ratio, one.best) if value], bottom, _TOP)
    step = (right - _LEFT_PX) / len(points)
    places = [_LEFT_PX + (place + 0.5) * step for place in range(len(points))]
    marks = [
        state_mark(one.state, x, scale.place(one.ratio) if one.ratio else bottom + _FAILED_PX, one.title)
        for one, x in zip(points, places, strict=True)
    ]
    every = math.ceil(_LABEL_PX / step)
    numbers = [
        text(str(one.number), x, bottom + 38, "tick", "middle")
        for place, (one, x) in enumerate(zip(points, places, strict=True))
        if place % every == 0
    ]
    return drawing(
        caption,
        width,
        height,
        *horizontal_grid(scale, _LEFT_PX, right, _TICK_ROOM_PX),
        _steps(points, places, scale, right),
        *marks,
        *numbers,
        text("trial", (_LEFT_PX + right) / 2, bottom + 56, "tick", "middle"),
    )


def _steps(points: Sequence[CurvePoint], places: Sequence[float], scale: RatioScale, right: float) -> Markup:
    """Return the incumbent's line: the default first, then each trial that replaced it."""
    corners, level = [(_LEFT_PX, scale.place(1.0))], scale.place(1.0)
    for one, x in zip(points, places, strict=True):
        if one.state is TrialState.WON:
            corners += [(x, level), (x, scale.place(one.best))]
            level = scale.place(one.best)
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*corners, (right, level)])
    return tag("polyline", points=path, class_="thread arm-1")
