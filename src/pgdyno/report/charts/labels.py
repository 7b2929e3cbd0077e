"""Fit texts and keep labels from overlapping. SVG neither wraps nor pushes apart."""

from __future__ import annotations

from collections.abc import Sequence

_EM_PER_CHARACTER = 0.56
"""Average advance of a proportional sans-serif, on the wide side: DejaVu Sans, the widest common fall-back,
has 0.60 for lower-case text; Segoe UI, Roboto and San Francisco have 0.50–0.53."""


BOLD_PX = 14.5
"""The size to reckon with for 13 px in bold, which is about a tenth wider."""


def fitted(content: str, room_px: float, font_px: float = 13.0) -> str:
    """Return the text, with its middle left out where it would be longer than ``room_px``.

    The ends are kept, because names of variants and workloads differ there.
    """
    room = max(3, int(room_px / (font_px * _EM_PER_CHARACTER)))
    if len(content) <= room:
        return content
    head = (room - 1) // 2
    return f"{content[: room - 1 - head]}…{content[-head:]}"


def spread(places: Sequence[float], gap_px: float, low: float, high: float) -> list[float]:
    """Return places near the wanted ones, in the same order, ``gap_px`` apart where low … high has room.

    Pushes down from the top, then up from the bottom: each label moves as little as its neighbours force.
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
