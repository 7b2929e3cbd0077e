"""Parts that add up to a whole, one below the other: each bar begins where the bar above ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.report.charts.marks import fitted
from pgdyno.report.charts.svg import NARROW, Caption, box, drawing, group, line, tag, text

_ROW_PX, _BAR_PX, _TOP_PX = 24.0, 14.0, 8.0
_NARROW_ROW_PX = 40.0
_LEAST_PX = 1.5


@dataclass(frozen=True)
class CascadeBar:
    """One part. ``style`` is the class of its colour: shade-0, shade-1, … or rest."""

    label: str
    value: float
    shown: str
    style: str


def cascade(caption: Caption, bars: Sequence[CascadeBar], whole: float, *, width: float) -> Markup:
    """Return the chart. Its full width is the whole, or the sum of the parts if that is larger."""
    is_narrow = width <= NARROW
    row = _NARROW_ROW_PX if is_narrow else _ROW_PX
    start, end = (1.0, width - 1) if is_narrow else (width * 0.42, width - 96)
    scale = (end - start) / max(whole, sum(max(0.0, one.value) for one in bars), 1e-9)
    height = _TOP_PX + row * len(bars) + 4
    parts = [line(at, 0, at, height, "grid") for at in (start, start + whole * scale)]
    begun = 0.0
    for place, bar in enumerate(bars):
        x, top = start + begun * scale, _TOP_PX + row * place
        parts.append(_bar(bar, (x, top + (18 if is_narrow else 0)), bar.value * scale))
        room = width * 0.66 if is_narrow else start - 12
        parts += [
            text(fitted(bar.label, room), 0, top + (12 if is_narrow else 11.5)),
            text(bar.shown, width, top + (12 if is_narrow else 11.5), "small muted", "end"),
        ]
        begun += max(0.0, bar.value)
    return drawing(caption, width, height, *parts)


def _bar(bar: CascadeBar, at: tuple[float, float], width: float) -> Markup:
    title = tag("title", f"{bar.label}: {bar.shown}")
    return group(title, box(*at, max(_LEAST_PX, width), _BAR_PX, f"cascade {bar.style}"))
