"""Charts of every block, grouped by round: ratios of two variants, and values of all. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from markupsafe import Markup

from pgdyno.base import numbers
from pgdyno.measure.view.series import ArmSeries, TrialValues, ValuePoint
from pgdyno.model.experiments.metric import Metric
from pgdyno.model.experiments.verdict import Interval
from pgdyno.report.charts.marks import BOLD_PX, arm_class, arm_shape, fitted, mark, spread
from pgdyno.report.charts.scales import LinearScale, RatioScale, horizontal_grid, ratio_scale, value_scale
from pgdyno.report.charts.svg import NARROW, Caption, box, drawing, line, text

_TOP, _BOTTOM_PX, _LEFT_PX = 12.0, 46.0, 58.0
_NAMES_PX = 110.0
_VALUE_ROOM_PX, _RATIO_ROOM_PX = 36.0, 34.0  # of a tick
_CHARACTER_PX = 7.0  # in a tick's label
_LABEL_GAP_PX = 15.0
_LABEL_PX = 76.0  # "+3,900 %" in bold, beside the estimate
_ROUND_PX, _FLOOR_LABEL_PX = 26.0, 18.0


@dataclass(frozen=True)
class RoundColumns:
    """Equally wide columns of rounds; ``blocks`` are each round's positions in order."""

    start: float
    width: float
    blocks: Mapping[int, Sequence[int]]

    @classmethod
    def of(cls, trials: Iterable[TrialValues], start: float, end: float) -> RoundColumns:
        """Divide start … end among the rounds with blocks."""
        found: dict[int, set[int]] = {}
        for trial in sorted(trials, key=lambda one: one.round):
            found.setdefault(trial.round, set()).add(trial.position)
        width = (end - start) / max(1, len(found))
        return cls(start, width, {number: sorted(positions) for number, positions in found.items()})

    def left(self, number: int) -> float:
        """Return the left end of a round's column."""
        return self.start + [*self.blocks].index(number) * self.width

    def place(self, trial: TrialValues) -> float:
        """Return a block's x coordinate: the middle of its part of the round's column."""
        own = self.blocks[trial.round]
        return self.left(trial.round) + (own.index(trial.position) + 0.5) * self.width / len(own)

    def background(self, top: float, bottom: float) -> list[Markup]:
        """Return a stripe behind every second round."""
        return [box(self.left(one), top, self.width, bottom - top, "stripe") for one in [*self.blocks][1::2]]

    def axis(self, bottom: float) -> list[Markup]:
        """Return the axis title, and as many round numbers as fit."""
        every, floor = math.ceil(_ROUND_PX / max(1, int(self.width))), bottom + _FLOOR_LABEL_PX
        labels = [
            text(str(one), self.left(one) + self.width / 2, floor, "tick", "middle")
            for one in [*self.blocks][::every]
        ]
        middle = self.start + self.width * len(self.blocks) / 2
        return [*labels, text("round", middle, floor + _FLOOR_LABEL_PX, "tick", "middle")]


@dataclass(frozen=True)
class RatioChart:
    """The chart's data; ``estimate`` is None without an interval, ``margin`` is the equivalence margin."""

    points: tuple[ValuePoint, ...]
    estimate: Interval | None
    margin: float
    arm: int  # the variant's index among the arms: its colour and shape


def ratio_chart(caption: Caption, chart: RatioChart, *, width: float) -> Markup:
    """Return the chart: a point per block (hollow if void), a bar per round at its mean.

    Void blocks do not extend the axis, because they do not count; those outside it are drawn at its ends.
    """
    height = 250.0 if width > NARROW else 230.0
    right = _LABEL_PX if width > NARROW else 8.0
    columns = RoundColumns.of([p.trial for p in chart.points], _LEFT_PX, width - right)
    scale = ratio_scale(_extent(chart), height - _BOTTOM_PX, _TOP)
    return drawing(
        caption,
        width,
        height,
        *columns.background(_TOP, height - _BOTTOM_PX),
        *_levels(chart, scale, width - right),
        *horizontal_grid(scale, _LEFT_PX, width - right, _RATIO_ROOM_PX),
        *_means(chart, columns, scale),
        *(_point(point, columns, scale, chart.arm) for point in chart.points),
        *columns.axis(height - _BOTTOM_PX),
        *(_estimate_label(chart, scale, width, height) if width > NARROW else ()),
    )


def _extent(chart: RatioChart) -> list[float]:
    counted = [point.value for point in chart.points if point.trial.void is None]
    estimate = [chart.estimate.low, chart.estimate.high] if chart.estimate else []
    return [*counted, *estimate, 1 - chart.margin, 1 + chart.margin]


def _levels(chart: RatioChart, scale: RatioScale, right: float) -> list[Markup]:
    """Return the equivalence band and the estimate's interval, behind the points."""
    high, low = scale.place(1 + chart.margin), scale.place(1 - chart.margin)
    parts = [box(_LEFT_PX, high, right - _LEFT_PX, low - high, "band")]
    if chart.estimate:
        top, bottom = scale.place(chart.estimate.high), scale.place(chart.estimate.low)
        middle = scale.place(chart.estimate.point)
        parts += [
            box(_LEFT_PX, top, right - _LEFT_PX, bottom - top, "estimate-band"),
            line(_LEFT_PX, middle, right, middle, "estimate"),
        ]
    return parts


def _means(chart: RatioChart, columns: RoundColumns, scale: RatioScale) -> list[Markup]:
    """Return a bar at every round's geometric mean, over the blocks that count."""
    parts = []
    for number in columns.blocks:
        logs = [
            math.log(point.value)
            for point in chart.points
            if point.trial.void is None and point.trial.round == number
        ]
        if logs:
            y, left = scale.place(math.exp(statistics.fmean(logs))), columns.left(number)
            parts.append(line(left + 3, y, left + columns.width - 3, y, f"mean {arm_class(chart.arm)}"))
    return parts


def _point(point: ValuePoint, columns: RoundColumns, scale: RatioScale, arm: int) -> Markup:
    shape, title = arm_shape(arm), _title(point.trial, numbers.change(point.value))
    if not scale.holds(point.value):
        shape = "up" if point.value > 1 else "down"  # an arrow head: the point is outside the axis
    return mark(
        shape, columns.place(point.trial), scale.place(point.value), 4.5, _class(point.trial, arm), title
    )


def _class(trial: TrialValues, arm: int) -> str:
    return f"mark void {arm_class(arm)}" if trial.void else f"mark {arm_class(arm)}"


def _title(trial: TrialValues, value: str) -> str:
    void = f" (void: {trial.void})" if trial.void else ""
    return f"round {trial.round}, block {trial.block}: {value}{void}"


def _estimate_label(chart: RatioChart, scale: RatioScale, width: float, height: float) -> Sequence[Markup]:
    """Return the estimate's figure at the right end of its line."""
    if chart.estimate is None:
        return ()
    digits = numbers.percent_digits(chart.estimate.low, chart.estimate.high)
    (y,) = spread([scale.place(chart.estimate.point)], 14, _TOP + 6, height - _BOTTOM_PX - 4)
    return (text(numbers.change(chart.estimate.point, digits), width - _LABEL_PX + 8, y + 4, "strong"),)


def value_chart(caption: Caption, arms: Sequence[ArmSeries], metric: Metric, *, width: float) -> Markup:
    """Return the chart; arms are named at their right ends if there is room, else in the page's legend."""
    is_wide = width > NARROW
    height = 250.0 if is_wide else 230.0
    right = width - (_NAMES_PX if is_wide else 8.0)
    trials = [point.trial for arm in arms for point in arm.points]
    values = [point.value for arm in arms for point in arm.points]  # of void blocks, too: disturbances show
    scale = value_scale(values, height - _BOTTOM_PX, _TOP)
    left = max(_LEFT_PX, 14 + _CHARACTER_PX * max(len(tick.label) for tick in scale.ticks(_VALUE_ROOM_PX)))
    columns = RoundColumns.of(trials, left, right)
    return drawing(
        caption,
        width,
        height,
        *columns.background(_TOP, height - _BOTTOM_PX),
        *horizontal_grid(scale, left, right, _VALUE_ROOM_PX),
        *(part for order, arm in enumerate(arms) for part in _arm(order, arm, columns, scale, metric)),
        *columns.axis(height - _BOTTOM_PX),
        *(_names(arms, scale, right, height) if is_wide else ()),
    )


def _arm(
    order: int, arm: ArmSeries, columns: RoundColumns, scale: LinearScale, metric: Metric
) -> list[Markup]:
    """Return an arm's points, connected within rounds only: each round has a new server."""
    counted = [point for point in arm.points if point.trial.void is None]
    threads = [
        line(
            columns.place(a.trial),
            scale.place(a.value),
            columns.place(b.trial),
            scale.place(b.value),
            f"thread {arm_class(order)}",
        )
        for a, b in pairwise(counted)
        if a.trial.round == b.trial.round
    ]
    marks = [
        mark(
            arm_shape(order),
            columns.place(point.trial),
            scale.place(point.value),
            4.0,
            _class(point.trial, order),
            f"{arm.variant}, {_title(point.trial, numbers.quantity(metric, point.value))}",
        )
        for point in arm.points
    ]
    return threads + marks


def _names(arms: Sequence[ArmSeries], scale: LinearScale, right: float, height: float) -> list[Markup]:
    """Return the arms' names next to their last points, pushed apart."""
    named = [(order, arm) for order, arm in enumerate(arms) if arm.points]
    wanted = [scale.place(arm.points[-1].value) for _, arm in named]
    places = spread(wanted, _LABEL_GAP_PX, _TOP + 4, height - _BOTTOM_PX)
    return [
        text(fitted(arm.variant, _NAMES_PX - 14, BOLD_PX), right + 12, y + 4, f"name {arm_class(order)}")
        for (order, arm), y in zip(named, places, strict=True)
    ]
