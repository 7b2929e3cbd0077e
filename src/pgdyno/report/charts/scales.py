"""Mapping of values to pixels, positions of ticks, and the grid lines at them.

| symbol | meaning | unit |
|---|---|---|
| low, high | ends of the domain | value, or ratio for RatioScale |
| start, end | positions of these ends; start > end for an axis that points up | px |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from markupsafe import Markup

from pgdyno.base import numbers
from pgdyno.report.charts.svg import line, text

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_WIDE_SPAN = 3.0  # above this ratio of high to low, equal steps in per cent are too uneven on the axis
_WIDE_CHANGES = (-90.0, -80.0, -65.0, -50.0, -30.0, 0.0, 50.0, 100.0, 200.0, 400.0, 900.0)
_RATIO_LIMITS = (0.1, 10.0)  # beyond −90 % … +900 % a chart would show one outlier and nothing else
_SMALLEST_RATIO_SPAN = 0.02  # half a domain; keeps pure noise from being magnified to fill the chart
_OPEN = 1e9  # largest ratio of an interval's end to its estimate
_WIDEST = 12.0  # times the median half-width: arbitrary; keeps one very wide interval from hiding all others


@dataclass(frozen=True)
class Tick:
    """One labelled place on an axis."""

    place: float
    label: str


@dataclass(frozen=True)
class _Domain:
    low: float
    high: float
    start: float
    end: float

    def holds(self, value: float) -> bool:
        """Whether a value is on the axis."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class LinearScale(_Domain):
    """Equal differences have equal lengths."""

    def place(self, value: float) -> float:
        """Return the pixel of ``value``, clamped to the axis."""
        part = (value - self.low) / (self.high - self.low)
        return self.start + min(1.0, max(0.0, part)) * (self.end - self.start)

    def ticks(self, room_px: float) -> list[Tick]:
        """Return ticks at round values, at least ``room_px`` apart."""
        count = max(2, int(abs(self.end - self.start) / room_px))
        values = round_values(self.low, self.high, count)
        digits = _digits(values)
        return [Tick(self.place(value), f"{value:,.{digits}f}") for value in values]


@dataclass(frozen=True)
class RatioScale(_Domain):
    """Equal factors have equal lengths: halving is as far from 1 as doubling."""

    def place(self, value: float) -> float:
        """Return the pixel of a ratio, clamped to the axis."""
        bounded = min(self.high, max(self.low, value))
        part = math.log(bounded / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self, room_px: float) -> list[Tick]:
        """Return ticks at round percentages, always including zero, at least ``room_px`` apart.

        They have the finest step at which all ticks fit. If even the coarsest step is too fine on the crowded
        side of a wide axis, the ticks that do not fit are omitted.
        """
        most = max(2, int(abs(self.end - self.start) / room_px))
        for count in range(most, 2, -1):
            ticks = self._ticks(count)
            if all(abs(a.place - b.place) >= room_px for a, b in pairwise(ticks)):
                return ticks
        return _thinned(self._ticks(most), self.place(1.0), room_px)

    def _ticks(self, count: int) -> list[Tick]:
        changes = round_values((self.low - 1) * 100, (self.high - 1) * 100, count)
        if self.high > _WIDE_SPAN * self.low:
            changes = [change for change in _WIDE_CHANGES if self.holds(1 + change / 100)]
        digits = _digits(changes)
        return [Tick(self.place(1 + c / 100), numbers.change(1 + c / 100, digits)) for c in changes]


def value_scale(values: Sequence[float], start: float, end: float) -> LinearScale:
    """Return a scale for amounts: from zero, unless all of them are far from zero.

    Starting at zero would leave most of the chart empty if values vary by a tenth.
    """
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low > 0 and low > 0.5 * high:
        room = max((high - low) * 0.15, high * 0.02)
        ends = round_values(low - room, high + room, 5)
        step = ends[1] - ends[0] if len(ends) > 1 else room
        return LinearScale(
            math.floor((low - room / 2) / step) * step, math.ceil((high + room / 2) / step) * step, start, end
        )
    return LinearScale(min(0.0, low), high * 1.08 or 1.0, start, end)


def ratio_scale(ratios: Iterable[float], start: float, end: float) -> RatioScale:
    """Return a scale that covers 1 and all finite ratios within −90 % … +900 %, with padding."""
    smallest, largest = _RATIO_LIMITS
    inside = [min(largest, max(smallest, r)) for r in ratios if math.isfinite(r)]
    low = math.log(min([1 - _SMALLEST_RATIO_SPAN, *inside]))
    high = math.log(max([1 + _SMALLEST_RATIO_SPAN, *inside]))
    air = 0.06 * (high - low)
    return RatioScale(math.exp(low - air), math.exp(high + air), start, end)


def horizontal_grid(
    scale: LinearScale | RatioScale, left: float, right: float, room_px: float, *, has_labels: bool = True
) -> list[Markup]:
    """Return a line at every tick, with its label at the left."""
    parts = []
    for tick in scale.ticks(room_px):
        parts.append(line(left, tick.place, right, tick.place, _line_class(scale, tick)))
        if has_labels:
            parts.append(text(tick.label, left - 8, tick.place + 4, "tick", "end"))
    return parts


def tick_labels(scale: LinearScale | RatioScale, y: float, room_px: float) -> list[Markup]:
    """Return the labels of a horizontal axis at ``y``."""
    return [text(tick.label, tick.place, y, "tick", "middle") for tick in scale.ticks(room_px)]


def vertical_grid(scale: RatioScale, top: float, bottom: float, room_px: float) -> list[Markup]:
    """Return a line at every tick."""
    return [
        line(tick.place, top, tick.place, bottom, _line_class(scale, tick)) for tick in scale.ticks(room_px)
    ]


def _line_class(scale: LinearScale | RatioScale, tick: Tick) -> str:
    is_zero = isinstance(scale, RatioScale) and math.isclose(tick.place, scale.place(1.0))
    return "zero" if is_zero else "grid"


def interval_extent(intervals: Sequence[tuple[float, float, float]]) -> list[float]:
    """Return the values that an axis for these intervals must cover; very wide ones count only in part.

    Shapes: each interval is low, point, high, all above zero.
    """
    widest = _WIDEST * median([_half_width(*interval) for interval in intervals]) if intervals else 0.0
    ends = []
    for low, point, high in intervals:
        reach = math.exp(min(widest, _half_width(low, point, high)))
        ends += [max(low, point / reach), min(high, point * reach)]
    return ends


def round_values(low: float, high: float, count: int) -> list[float]:
    """Return about ``count`` values at steps of 1, 2, 2.5 or 5 × 10ⁿ within low … high."""
    if not high > low:
        return [low]
    rough = (high - low) / count
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(s * power for s in _STEPS if s * power >= rough * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [n * step for n in range(first, last + 1)]


def _half_width(low: float, point: float, high: float) -> float:
    """Return half the width on the logarithmic scale; an open end counts as ``_OPEN``."""
    down = point / low if low > 0 else _OPEN
    return math.log(max(1.0, min(_OPEN, max(high / point, down))))


def _digits(values: Sequence[float]) -> int:
    """Return how many decimals show the values exactly; they are multiples of the step between them."""
    step = abs(values[1] - values[0]) if len(values) > 1 else abs(values[0])
    return next((d for d in range(9) if abs(round(step, d) - step) <= step * 1e-4), 9)


def _thinned(ticks: Sequence[Tick], zero: float, room_px: float) -> list[Tick]:
    """Drop ticks that are too close to their neighbour, going outward from zero, which is kept."""
    kept = [tick for tick in ticks if tick.place == zero]
    for side in (-1, 1):
        last = zero
        for tick in sorted(ticks, key=lambda tick: side * tick.place):
            if side * (tick.place - last) >= room_px:
                kept.append(tick)
                last = tick.place
    return sorted(kept, key=lambda tick: tick.place)
