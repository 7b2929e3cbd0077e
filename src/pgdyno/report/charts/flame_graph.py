"""A flame graph: functions as wide as their share of the samples, callees below their callers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.report.charts.marks import fitted
from pgdyno.report.charts.svg import Caption, box, drawing, group, tag, text

_ROW_PX, _LEAST_LABEL_PX = 17.0, 44.0
_LABEL_PX = 13.0  # instead of 11.5: names of functions have capitals and underscores, which are wide
_SHADES = 2


@dataclass(frozen=True)
class FlameBar:
    """A function. ``start`` and ``share`` are fractions of all samples; ``depth`` is its row."""

    function: str
    start: float
    share: float
    depth: int


def flame_graph(caption: Caption, bars: Sequence[FlameBar], *, width: float) -> Markup:
    """Return the chart. A tooltip shows each function's name and share."""
    rows = 1 + max((bar.depth for bar in bars), default=0)
    return drawing(caption, width, rows * _ROW_PX, *(_bar(bar, width) for bar in bars))


def _bar(bar: FlameBar, width: float) -> Markup:
    x, y, wide = bar.start * width, bar.depth * _ROW_PX, bar.share * width
    parts = [
        tag("title", f"{bar.function}: {bar.share:.1%} of the samples"),
        box(x, y, wide - 0.5, _ROW_PX - 1, f"flame shade-{bar.depth % _SHADES}"),
    ]
    if wide >= _LEAST_LABEL_PX:
        parts.append(text(fitted(bar.function, wide - 8, _LABEL_PX), x + 4, y + 12, "small"))
    return group(*parts)
