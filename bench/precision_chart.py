"""Draws what ``precision.py`` found: the minimum detectable effect against time, both on logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.report.charts.svg import Caption, drawing, group, line, tag, text

_STYLE = """
svg { font: 13px system-ui, sans-serif; background: #fff } text { fill: #1c2733 } .muted { fill: #5c6b7a }
.grid { stroke: #e3e8ed } .goal { stroke: #5c6b7a; stroke-dasharray: 5 4 }
polyline { fill: none; stroke-width: 2 }
.duet { stroke: #0a6ebd } .alternating { stroke: #c2571a; stroke-dasharray: 7 3 }
.duet-sysbench, .duet-pgbench { stroke: #4a7d2c; stroke-dasharray: 2 3 }
text.duet { fill: #0a6ebd; stroke: none } text.alternating { fill: #c2571a; stroke: none }
text.duet-sysbench, text.duet-pgbench { fill: #4a7d2c; stroke: none }
@media (prefers-color-scheme: dark) {
  svg { background: #12181f } text { fill: #e6edf3 } .grid { stroke: #27313b }
}
"""
_WIDTH, _HEIGHT = 848.0, 340.0
_PANEL = 350.0  # px, width of each of the two panels
_LEFT, _GAP, _TOP, _BOTTOM = 52.0, 66.0, 46.0, 292.0
_EFFECTS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_TIMES_S = (15, 30, 60, 120, 300, 600, 1200, 2400)
_TITLES = {"throughput_tps": "throughput", "server_cpu_us_per_transaction": "server CPU per transaction"}


@dataclass(frozen=True)
class Point:
    """The minimum detectable effect after so many rounds; ``mde`` None where too few were left."""

    design: str
    metric: str
    rounds: int
    elapsed_s: float
    mde: float | None


@dataclass(frozen=True)
class _Axes:
    """Where a panel begins, and what its axes hold."""

    left: float
    times_s: tuple[float, float]
    effects: tuple[float, float]

    def x(self, time_s: float) -> float:
        low, high = self.times_s
        return self.left + _PANEL * math.log(time_s / low) / math.log(high / low)

    def y(self, effect: float) -> float:
        low, high = self.effects
        return _BOTTOM - (_BOTTOM - _TOP) * math.log(effect / low) / math.log(high / low)


def precision_chart(points: Sequence[Point], workload: str, goal: float) -> Markup:
    """Return the chart as a file of its own; ``goal`` is drawn as a dashed line."""
    drawn = [point for point in points if point.mde is not None]
    times = _around([point.elapsed_s for point in drawn], _TIMES_S)
    effects = _around([goal, *(point.mde for point in drawn if point.mde)], _EFFECTS)
    caption = Caption(
        "precision",
        f"Minimum detectable effect against time, {workload}",
        "Two panels, throughput and server CPU per transaction; a line for each design; lower is better.",
    )
    panels = [
        _panel([p for p in drawn if p.metric == metric], title, goal, _Axes(left, times, effects))
        for (metric, title), left in zip(_TITLES.items(), (_LEFT, _LEFT + _PANEL + _GAP), strict=True)
    ]
    heading = text(f"{workload}: smallest change found with 80 % power, against time", _LEFT, 16)
    chart = drawing(caption, _WIDTH, _HEIGHT, tag("style", Markup(_STYLE)), heading, *panels)  # noqa: S704 — literal
    return Markup('<svg xmlns="http://www.w3.org/2000/svg" width="848" ') + chart[len("<svg ") :]


def _around(values: Sequence[float], ticks: Sequence[float]) -> tuple[float, float]:
    """Return the ticks that enclose all values."""
    low = max((tick for tick in ticks if tick <= min(values)), default=ticks[0])
    high = min((tick for tick in ticks if tick >= max(values)), default=ticks[-1])
    return (low, high if high > low else low * 2)


def _panel(points: Sequence[Point], title: str, goal: float, axes: _Axes) -> Markup:
    right = axes.left + _PANEL
    effects = [tick for tick in _EFFECTS if axes.effects[0] <= tick <= axes.effects[1]]
    times = [tick for tick in _TIMES_S if axes.times_s[0] <= tick <= axes.times_s[1]]
    parts = [text(title, axes.left, _TOP - 10)]
    for effect in effects:
        parts.append(line(axes.left, axes.y(effect), right, axes.y(effect), "grid"))
        parts.append(
            text(f"{effect:.1%}".replace(".0%", "%"), axes.left - 6, axes.y(effect) + 4, "muted", "end")
        )
    parts += [text(_duration(time), axes.x(time), _BOTTOM + 18, "muted", "middle") for time in times]
    parts.append(line(axes.left, axes.y(goal), right, axes.y(goal), "goal"))
    for design in sorted({point.design for point in points}):
        own = [point for point in points if point.design == design and point.mde]
        places = [(axes.x(point.elapsed_s), axes.y(point.mde or goal)) for point in own]
        parts.append(tag("polyline", points=" ".join(f"{x:.1f},{y:.1f}" for x, y in places), class_=design))
        parts.append(text(design, places[-1][0], places[-1][1] + 18, design, "end"))
    return group(*parts)


def _duration(time_s: float) -> str:
    return f"{time_s:.0f} s" if time_s < 60 else f"{time_s / 60:g} min"
