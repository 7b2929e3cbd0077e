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
    share = "" if width <= NARROW else f", {numbers.share(proof.share, 0)} of the limit"
    edge = "end" if limit > width / 2 else "start"
    return drawing(
        caption,
        width,
        _HEIGHT_PX,
        box(1, _BAR_Y, limit - 1, _BAR_PX, "vessel"),
        *_items(proof, scale),
        line(refused, _BAR_Y - 5, refused, _BAR_Y + _BAR_PX + 5, "refused"),
        text(f"refused above {numbers.share(refused_above)}", refused - 4, _BAR_Y - 9, "small muted", "end"),
        text(f"{numbers.size(proof.total_bytes)} worst case{share}", 1, _HEIGHT_PX - 8, "strong"),
        text(f"{numbers.size(proof.limit_bytes)} limit", limit, _HEIGHT_PX - 8, "small muted", edge),
    )


def _items(proof: MemoryProof, scale: float) -> list[Markup]:
    """Return one segment per item, in the order of the table."""
    parts, x = [], 1.0
    for order, item in enumerate(proof.items):
        width = item.size_bytes * scale
        title = tag("title", f"{item.name}: {numbers.size(item.size_bytes)}")
        segment = box(x, _BAR_Y, width, _BAR_PX, f"item shade-{order % _SHADES}")
        is_named = fitted(item.name, width - 14, _LABEL_PX) == item.name  # if it fits
        name = [text(item.name, x + 7, _BAR_Y + _BAR_PX / 2 + 4, "inside")] if is_named else []
        parts.append(group(title, segment, *name))
        x += width
    return parts
