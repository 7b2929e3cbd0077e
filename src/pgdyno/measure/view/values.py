"""Chart of every arm's values over the blocks: shows the noise common to all arms."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from markupsafe import Markup

from pgdyno.base import numbers
from pgdyno.measure.view.rounds_chart import RoundColumns, round_columns
from pgdyno.measure.view.series import ArmSeries, ValuePoint
from pgdyno.model.experiments.metric import Metric
from pgdyno.report.charts.marks import BOLD_PX, arm_class, arm_shape, fitted, mark, spread
from pgdyno.report.charts.scales import LinearScale, value_scale
from pgdyno.report.charts.svg import NARROW, Caption, drawing, line, text

_TOP, _BOTTOM_PX, _LEFT_PX = 12.0, 46.0, 58.0
_NAMES_PX = 110.0
_TICK_ROOM_PX = 36.0
_CHARACTER_PX = 7.0  # in a tick's label
_LABEL_GAP_PX = 15.0


def value_chart(caption: Caption, arms: Sequence[ArmSeries], metric: Metric, *, width: float) -> Markup:
    """Return the chart; arms are named at their right ends if there is room, else in the page's legend."""
    is_wide = width > NARROW
    height = 250.0 if is_wide else 230.0
    right = width - (_NAMES_PX if is_wide else 8.0)
    trials = [point.trial for arm in arms for point in arm.points]
    scale = value_scale(_extent(arms), height - _BOTTOM_PX, _TOP)
    left = max(_LEFT_PX, 14 + _CHARACTER_PX * max(len(tick.label) for tick in scale.ticks(_TICK_ROOM_PX)))
    columns = round_columns(trials, left, right)
    return drawing(
        caption,
        width,
        height,
        *columns.background(_TOP, height - _BOTTOM_PX),
        *_axis(scale, left, right),
        *(part for order, arm in enumerate(arms) for part in _arm(order, arm, columns, scale, metric)),
        *columns.axis(height - _BOTTOM_PX),
        *(_names(arms, scale, right, height) if is_wide else ()),
    )


def _extent(arms: Sequence[ArmSeries]) -> list[float]:
    """Return all values, including void blocks, which show disturbances."""
    return [point.value for arm in arms for point in arm.points]


def _axis(scale: LinearScale, left: float, right: float) -> list[Markup]:
    return [
        part
        for tick in scale.ticks(_TICK_ROOM_PX)
        for part in (
            line(left, tick.place, right, tick.place, "grid"),
            text(tick.label, left - 8, tick.place + 4, "tick", "end"),
        )
    ]


def _arm(
    order: int, arm: ArmSeries, columns: RoundColumns, scale: LinearScale, metric: Metric
) -> list[Markup]:
    """Return an arm's points, connected within rounds only: each round has a new server."""
    class_ = arm_class(order)
    counted = [point for point in arm.points if point.trial.void is None]
    threads = [
        line(
            columns.place(a.trial),
            scale.place(a.value),
            columns.place(b.trial),
            scale.place(b.value),
            f"thread {class_}",
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
            f"mark void {class_}" if point.trial.void else f"mark {class_}",
            _title(arm.variant, point, metric),
        )
        for point in arm.points
    ]
    return threads + marks


def _title(variant: str, point: ValuePoint, metric: Metric) -> str:
    trial = point.trial
    void = f" (void: {trial.void})" if trial.void else ""
    value = numbers.quantity(metric, point.value)
    return f"{variant}, round {trial.round}, block {trial.block}: {value}{void}"


def _names(arms: Sequence[ArmSeries], scale: LinearScale, right: float, height: float) -> list[Markup]:
    """Return the arms' names next to their last points, pushed apart."""
    named = [(order, arm) for order, arm in enumerate(arms) if arm.points]
    wanted = [scale.place(arm.points[-1].value) for _, arm in named]
    places = spread(wanted, _LABEL_GAP_PX, _TOP + 4, height - _BOTTOM_PX)
    return [
        text(fitted(arm.variant, _NAMES_PX - 14, BOLD_PX), right + 12, y + 4, f"name {arm_class(order)}")
        for (order, arm), y in zip(named, places, strict=True)
    ]
