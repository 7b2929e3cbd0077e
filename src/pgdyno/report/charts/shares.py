"""Shares of a whole: its parts below each other, a flame graph, and strips of cells by place. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.report.charts.marks import fitted
from pgdyno.report.charts.svg import NARROW, Caption, box, drawing, group, line, tag, text

_PART_PX, _NARROW_PART_PX, _BAR_PX, _TOP_PX = 24.0, 40.0, 14.0, 8.0
_LEAST_PX = 1.5
_FLAME_PX, _LEAST_LABEL_PX = 17.0, 44.0
_FONT_PX = 13.0  # instead of 11.5: names of functions have capitals and underscores, which are wide
_SHADES = 2
_CELL_PX, _GAP_PX, _LABEL_PX, _BETWEEN_PX = 8.0, 1.0, 18.0, 12.0
STEPS = (0.02, 0.005, 0.001, 0.0002, 0.0)
"""Lower limits of the styles heat-0, heat-1, …: a cell has the style of the first share that it exceeds."""


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
    row = _NARROW_PART_PX if is_narrow else _PART_PX
    start, end = (1.0, width - 1) if is_narrow else (width * 0.42, width - 96)
    scale = (end - start) / max(whole, sum(max(0.0, one.value) for one in bars), 1e-9)
    height = _TOP_PX + row * len(bars) + 4
    parts = [line(at, 0, at, height, "grid") for at in (start, start + whole * scale)]
    begun = 0.0
    for place, bar in enumerate(bars):
        x, top = start + begun * scale, _TOP_PX + row * place
        parts.append(_part(bar, (x, top + (18 if is_narrow else 0)), bar.value * scale))
        room = width * 0.66 if is_narrow else start - 12
        parts += [
            text(fitted(bar.label, room), 0, top + (12 if is_narrow else 11.5)),
            text(bar.shown, width, top + (12 if is_narrow else 11.5), "small muted", "end"),
        ]
        begun += max(0.0, bar.value)
    return drawing(caption, width, height, *parts)


def _part(bar: CascadeBar, at: tuple[float, float], width: float) -> Markup:
    title = tag("title", f"{bar.label}: {bar.shown}")
    return group(title, box(*at, max(_LEAST_PX, width), _BAR_PX, f"cascade {bar.style}"))


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
    return drawing(caption, width, rows * _FLAME_PX, *(_bar(bar, width) for bar in bars))


def _bar(bar: FlameBar, width: float) -> Markup:
    x, y, wide = bar.start * width, bar.depth * _FLAME_PX, bar.share * width
    parts = [
        tag("title", f"{bar.function}: {bar.share:.1%} of the samples"),
        box(x, y, wide - 0.5, _FLAME_PX - 1, f"flame shade-{bar.depth % _SHADES}"),
    ]
    if wide >= _LEAST_LABEL_PX:
        parts.append(text(fitted(bar.function, wide - 8, _FONT_PX), x + 4, y + 12, "small"))
    return group(*parts)


@dataclass(frozen=True)
class HeatCell:
    """A cell by its place in the strip; cells that are not listed are empty."""

    index: int
    share: float
    shown: str


@dataclass(frozen=True)
class Strip:
    """A row of cells, wrapped at the width of the chart."""

    label: str
    length: int
    cells: tuple[HeatCell, ...]


def heat_strips(caption: Caption, strips: Sequence[Strip], *, width: float) -> Markup:
    """Return the chart: one strip below the other, all with the same number of cells in a row."""
    per_row = int((width + _GAP_PX) // _CELL_PX)
    parts: list[Markup] = []
    top = 0.0
    for strip in strips:
        parts.append(text(fitted(strip.label, width), 0, top + 12))
        top += _LABEL_PX
        rows = -(-strip.length // per_row)
        parts += _empty(strip.length, per_row, top)
        parts += (_cell(cell, per_row, top) for cell in strip.cells)
        top += rows * _CELL_PX + _BETWEEN_PX
    return drawing(caption, width, top, *parts)


def style_of(share: float) -> str:
    """Return the style of a share above zero."""
    return f"heat heat-{next(step for step, least in enumerate(STEPS) if share > least)}"


def _empty(length: int, per_row: int, top: float) -> Iterator[Markup]:
    for row in range(-(-length // per_row)):
        cells = min(per_row, length - row * per_row)
        yield box(0, top + row * _CELL_PX, cells * _CELL_PX - _GAP_PX, _CELL_PX - _GAP_PX, "heat heat-none")


def _cell(cell: HeatCell, per_row: int, top: float) -> Markup:
    row, column = divmod(cell.index, per_row)
    side = _CELL_PX - _GAP_PX
    square = box(column * _CELL_PX, top + row * _CELL_PX, side, side, style_of(cell.share))
    return group(tag("title", cell.shown), square)
