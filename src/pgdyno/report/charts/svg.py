"""SVG elements. Everything except markup is escaped."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup, escape

WIDE = 848.0
NARROW = 340.0
"""Widths in pixels that charts are drawn for; a page shows the one that fits."""


@dataclass(frozen=True)
class Caption:
    """A chart's text for screen readers. ``key`` is unique in the page: element ids derive from it."""

    key: str
    title: str
    description: str


def tag(name: str, *children: Markup | str, **attributes: float | str | None) -> Markup:
    """Return one element. ``class_`` becomes class, ``stroke_width`` stroke-width; None is omitted."""
    parts = [Markup("<{}").format(Markup(name))]  # noqa: S704 — element names are literals of this package
    for key, value in attributes.items():
        if value is not None:
            attribute = key.rstrip("_").replace("_", "-")
            parts.append(Markup(' {}="{}"').format(attribute, _text(value)))
    if not children:
        return Markup().join([*parts, Markup("/>")])
    inner = Markup().join(escape(child) for child in children)
    return Markup().join([*parts, Markup(">"), inner, Markup("</{}>").format(Markup(name))])  # noqa: S704


def group(*children: Markup | str, **attributes: float | str | None) -> Markup:
    """Return a ``<g>``."""
    return tag("g", *children, **attributes)


def text(content: str, x: float, y: float, class_: str = "", anchor: str = "start") -> Markup:
    """Return a text with its baseline at ``y``."""
    return tag("text", content, x=x, y=y, class_=class_ or None, text_anchor=anchor)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """Return a straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def box(x: float, y: float, width: float, height: float, class_: str) -> Markup:
    """Return a rectangle; a negative size counts as 0."""
    return tag("rect", x=x, y=y, width=max(0.0, width), height=max(0.0, height), class_=class_)


def drawing(caption: Caption, width: float, height: float, *children: Markup) -> Markup:
    """Return the chart with title and description. It fills its column, up to the width it was drawn for."""
    name = f"{caption.key}-{width:.0f}"
    return tag(
        "svg",
        tag("title", caption.title, id=f"{name}-title"),
        tag("desc", caption.description, id=f"{name}-desc"),
        *children,
        class_="chart wide" if width > (WIDE + NARROW) / 2 else "chart narrow",
        viewBox=f"0 0 {_text(width)} {_text(height)}",
        role="img",
        aria_labelledby=f"{name}-title {name}-desc",
    )


def _text(value: float | str) -> str:
    """Return a coordinate with at most two decimals: enough for print, and small enough for mail."""
    if isinstance(value, str):
        return value
    return f"{value:.2f}".rstrip("0").rstrip(".")
