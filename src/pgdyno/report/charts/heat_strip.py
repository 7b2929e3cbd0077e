"""Strips of cells in rows, for a program's pages in memory: the darker a cell, the larger its share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.report.charts.marks import fitted
from pgdyno.report.charts.svg import Caption, box, drawing, group, tag, text

_CELL_PX, _GAP_PX, _LABEL_PX, _BETWEEN_PX = 8.0, 1.0, 18.0, 12.0
STEPS = (0.02, 0.005, 0.001, 0.0002, 0.0)
"""Lower limits of the styles heat-0, heat-1, …: a cell has the style of the first share that it exceeds."""


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
