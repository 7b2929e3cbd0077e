"""The memory proof as one bar: the worst case, item by item, and the limit."""

from __future__ import annotations

from markupsafe import Markup

from pgdyno.base import numbers
from pgdyno.model.plans.plan import MemoryProof
from pgdyno.report.charts.marks import fitted
from pgdyno.report.charts.svg import NARROW, Caption, box, drawing, group, line, tag, text

_BAR_Y, _BAR_PX, _HEIGHT_PX = 24.0, 26.0, 76.0
_SHADES = 2
_LABEL_PX = 11.5


def memory_chart(caption: Caption, proof: MemoryProof, *, refused_above: float, width: float) -> Markup:
    """Return the bar. Its full width is the limit, or the worst case if that is larger.

    Items have alternating shades, and a name if they are large enough; the table next to the chart names all.
    """
    inner = width - 2
    scale = inner / max(proof.limit_bytes, proof.total_bytes, 1)
    limit = 1 + proof.limit_bytes * scale
    refused = 1 + proof.limit_bytes * refused_above * scale
    edge = "end" if limit > width / 2 else "start"
    return drawing(
        caption,
        width,
        _HEIGHT_PX,
        box(1, _BAR_Y, limit - 1, _BAR_PX, "vessel"),
        *_items(proof, scale),
        line(refused, _BAR_Y - 5, refused, _BAR_Y + _BAR_PX + 5, "refused"),
        text(f"refused above {numbers.share(refused_above)}", refused - 4, _BAR_Y - 9, "small muted", "end"),
        text(_total(proof, width), 1, _HEIGHT_PX - 8, "strong"),
        text(f"{numbers.size(proof.limit_bytes)} limit", limit, _HEIGHT_PX - 8, "small muted", edge),
    )


def _items(proof: MemoryProof, scale: float) -> list[Markup]:
    """Return one segment per item, in the order of the table."""
    parts, x = [], 1.0
    for order, item in enumerate(proof.items):
        width = item.size_bytes * scale
        title = tag("title", f"{item.name}: {numbers.size(item.size_bytes)}")
        segment = box(x, _BAR_Y, width, _BAR_PX, f"item shade-{order % _SHADES}")
        parts.append(group(title, segment, *_name(item.name, x, width)))
        x += width
    return parts


def _name(name: str, x: float, width: float) -> list[Markup]:
    """Return an item's name inside its segment; empty if it does not fit."""
    if fitted(name, width - 14, _LABEL_PX) != name:
        return []
    return [text(name, x + 7, _BAR_Y + _BAR_PX / 2 + 4, "inside")]


def _total(proof: MemoryProof, width: float) -> str:
    worst = f"{numbers.size(proof.total_bytes)} worst case"
    return worst if width <= NARROW else f"{worst}, {numbers.share(proof.share, 0)} of the limit"
