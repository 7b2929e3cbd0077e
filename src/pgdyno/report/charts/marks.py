"""Marks for points. Shapes differ as well as colours, for print and for colour-blind readers."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from pgdyno.model.experiments.verdict import Decision
from pgdyno.report.charts.svg import line, tag, text

ARM_STYLES = 7
"""Number of distinct arm colours (``arm-0`` is the baseline); further arms repeat them."""
_SHAPES = ("circle", "square", "diamond", "triangle", "plus")
_QUARTER_TURNS = ((1, 0), (0, 1), (-1, 0), (0, -1))  # cosine and sine
_DECISION_SHAPES = {
    Decision.BETTER: "circle",
    Decision.WORSE: "square",
    Decision.EQUIVALENT: "diamond",
    Decision.INCONCLUSIVE: "circle",
}
_EM_PER_CHARACTER = 0.56
"""Average advance of a proportional sans-serif, on the wide side: DejaVu Sans, the widest common fall-back,
has 0.60 for lower-case text; Segoe UI, Roboto and San Francisco have 0.50–0.53."""
BOLD_PX = 14.5
"""Effective size of 13 px in bold, which is about a tenth wider."""


def mark(shape: str, x: float, y: float, radius: float, class_: str, title: str | None = None) -> Markup:
    """Return a mark centred at x, y; ``title`` is its tooltip."""
    content = (tag("title", title),) if title else ()
    if shape == "circle":
        return tag("circle", *content, cx=x, cy=y, r=radius, class_=class_)
    if shape == "square":
        half = radius * 0.9
        return tag("rect", *content, x=x - half, y=y - half, width=2 * half, height=2 * half, class_=class_)
    corners = _corners(shape, x, y, radius)
    points = " ".join(f"{px:.2f},{py:.2f}" for px, py in corners)
    return tag("polygon", *content, points=points, class_=class_)


def heading(title: str, hint: str, width: float, base: float) -> list[Markup]:
    """Return a title over a rule, with the hint at the right."""
    return [
        text(fitted(title, width * 0.65, BOLD_PX), 0, base, "strong"),
        *([text(hint, width, base, "small muted", "end")] if hint else ()),
        line(0, base + 6, width, base + 6, "rule"),
    ]


def decision_mark(decision: Decision, x: float, y: float) -> Markup:
    """Return the mark of a verdict; the style sheet draws inconclusive hollow."""
    return mark(_DECISION_SHAPES[decision], x, y, 5.5, f"mark {decision}")


def arm_class(position: int) -> str:
    """Return the style class of the arm at this position."""
    return f"arm-{position if position == 0 else (position - 1) % (ARM_STYLES - 1) + 1}"


def arm_shape(position: int) -> str:
    """Return the shape of the arm at this position."""
    return _SHAPES[position % len(_SHAPES)]


def _corners(shape: str, x: float, y: float, radius: float) -> list[tuple[float, float]]:
    size = radius * 1.25
    if shape == "diamond":
        return [(x, y - size), (x + size, y), (x, y + size), (x - size, y)]
    if shape == "plus":
        arm = size * 0.4
        quarter = ((arm, -size), (arm, -arm), (size, -arm))
        return [(x + a * c - b * s, y + a * s + b * c) for c, s in _QUARTER_TURNS for a, b in quarter]
    tip = size if shape == "down" else -size
    return [(x, y + tip), (x + size, y - tip * 0.75), (x - size, y - tip * 0.75)]


def fitted(content: str, room_px: float, font_px: float = 13.0) -> str:
    """Return the text, with an ellipsis in its middle if it would be longer than ``room_px``.

    The ends are kept, because names of variants and workloads differ there.
    """
    room = max(3, int(room_px / (font_px * _EM_PER_CHARACTER)))
    if len(content) <= room:
        return content
    head = (room - 1) // 2
    return f"{content[: room - 1 - head]}…{content[-head:]}"


def spread(places: Sequence[float], gap_px: float, low: float, high: float) -> list[float]:
    """Return places near the given ones, in the same order, ``gap_px`` apart if low … high has room.

    Pushes down from the top, then up from the bottom: each label moves only as far as neighbours force it.
    """
    if not places:
        return []
    gap = min(gap_px, (high - low) / max(1, len(places) - 1)) if len(places) > 1 else gap_px
    order = sorted(range(len(places)), key=lambda index: places[index])
    result = list(places)
    above = low - gap
    for index in order:
        result[index] = above = max(places[index], above + gap)
    below = high + gap
    for index in reversed(order):
        result[index] = below = min(result[index], below - gap)
    return result
