"""Workloads on a grid of loads, database sizes and levels: one part per load, with charts. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from pgdyno.base import numbers
from pgdyno.base.errors import SettingError
from pgdyno.base.text import listed
from pgdyno.measure.verdicts.scaling import ScalingCurve, scaling_curves
from pgdyno.measure.verdicts.transaction_split import sharing_costs, transaction_splits
from pgdyno.measure.view.wording import effect_text, symbol
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.metric import THROUGHPUT
from pgdyno.model.experiments.workload import AGGREGATE, BESIDE, issuer_and_words
from pgdyno.model.experiments.workload import CURVES as LOOP_CURVES
from pgdyno.postgres.guc import normalise
from pgdyno.report.charts.lines import Line, LineChart, LinePoint, Panel, Reference, line_chart
from pgdyno.report.charts.svg import Caption
from pgdyno.report.elements.settings import baseline_values
from pgdyno.report.elements.tables import Figure, Section, StyledTable, Table, columns, figure
from pgdyno.studies.grids.findings import SHARING, scaling, sharing, split_time, what_to_set
from pgdyno.studies.grids.grid_tables import (
    Amounts,
    Load,
    amount_table,
    amounts,
    compared_variants,
    counted,
    gain_table,
    gaps,
    loads,
    summary_table,
    verdict_table,
    verdicts_on,
    with_bounds,
)

_PAGE_TABLES = "page_table_bytes"
_PAGE_METRICS = (_PAGE_TABLES, "huge_page_bytes", "minor_faults_per_transaction")
_BEYOND = 0.4  # of a step: distance at which a size beyond all database sizes is marked

PointOf = Callable[[str, str, tuple[int, int], int], LinePoint | None]
"""Maps workload, variant, (size, level) and the place on the axis to a point, or None."""


@dataclass(frozen=True)
class GridPart:
    """The part of one load. ``figures`` are visible; ``more`` shows the same at lower levels, collapsed.

    ``beside`` summarises other metrics over all cells, ``cells`` has them for every cell. ``gaps`` has what
    is missing, with reasons.
    """

    load: str
    gains: StyledTable | None
    other_gains: tuple[StyledTable, ...]
    gaps: tuple[str, ...]
    figures: tuple[Figure, ...]
    more: tuple[Figure, ...]
    beside: Table | None
    cells: tuple[Table, ...]
    scaling: tuple[Section, ...] = ()


@dataclass(frozen=True)
class Grid:
    """All loads; ``title`` names the varied quantities.

    ``together`` shows loads of the same statement side by side; ``sharing`` is the cost of shared tables.
    """

    title: str
    parts: tuple[GridPart, ...]
    together: tuple[Figure, ...] = ()
    meaning: ClassVar[str] = SHARING
    sharing: tuple[Section, ...] = ()
    splits: tuple[Section, ...] = ()
    to_set: Section | None = None


def grid(experiment: Experiment) -> Grid | None:
    """Return the parts of all loads; None if the workloads form no grid."""
    found = [load for load in loads(experiment) if _issuer(load) not in BESIDE]
    if not found:
        return None
    varied = [
        *(["database size"] if any(len(load.sizes) > 1 for load in found) else []),
        *dict.fromkeys(load.unit for load in found if len(load.levels) > 1),
    ]
    title = f"By {listed(varied)}" if varied else "Every load"
    curves = scaling_curves(experiment)
    return Grid(
        title,
        tuple(_part(experiment, load, curves) for load in found),
        tuple(_together(experiment, found)),
        tuple(map(sharing, sharing_costs(experiment))),
        tuple(map(split_time, transaction_splits(experiment))),
        what_to_set(experiment),
    )


def _issuer(load: Load) -> str:
    issuer, _ = issuer_and_words(load.name)
    return issuer


def place_among(size: float, sizes: Sequence[int]) -> float:
    """Return a size's place among two or more ascending sizes, counted from 0.

    It is interpolated on the logarithmic scale, and clamped to ``_BEYOND`` below the first and above the
    last.
    """
    after = min(max(1, bisect_left(sizes, size)), len(sizes) - 1)
    below, above = sizes[after - 1], sizes[after]
    place = after - 1 + math.log(size / below) / math.log(above / below)
    return min(max(-_BEYOND, place), len(sizes) - 1 + _BEYOND)


def _part(experiment: Experiment, load: Load, curves: Sequence[ScalingCurve]) -> GridPart:
    throughput = amounts(experiment, load, THROUGHPUT)
    is_compared = len(experiment.variants) > 1  # memory of pages only matters between variants
    others = (amounts(experiment, load, name) for name in (_PAGE_METRICS if is_compared else ()))
    page_metrics = [one for one in others if one.estimates]
    by_size = [
        found
        for level in reversed(load.levels)
        if (found := _by_size(experiment, load.at(level), throughput, level))
    ]
    in_view = (
        _gains(experiment, load),
        _by_level(experiment, load, throughput),
        *by_size[:1],
        *(_by_level(experiment, load, one) for one in page_metrics if one.metric.name == _PAGE_TABLES),
    )
    judged = dict.fromkeys(v.metric for v in experiment.verdicts if v.metric != THROUGHPUT)
    return GridPart(
        load=load.name,
        gains=gain_table(experiment, load),
        other_gains=tuple(table for metric in judged if (table := gain_table(experiment, load, metric))),
        gaps=gaps(experiment, load),
        figures=tuple(drawn for drawn in in_view if drawn),
        more=tuple(by_size[1:]),
        beside=summary_table(experiment, page_metrics) if page_metrics else None,
        cells=tuple(amount_table(experiment, load, one, has_bounds=False) for one in page_metrics),
        scaling=tuple(
            scaling(one, f"How it scales, {numbers.size(one.database_bytes)} of data")
            for one in curves
            if one.load == load.name
        ),
    )


def _gains(experiment: Experiment, load: Load) -> Figure | None:
    """Return a chart of effect and interval of every verdict on throughput; None without effects."""
    verdicts = verdicts_on(experiment)

    def point(workload: str, variant: str, at: tuple[int, int], place: int) -> LinePoint | None:
        verdict = verdicts.get((workload, variant))
        if verdict is None or verdict.effect is None:
            return None
        bounds = verdict.interval
        interval = f" ({numbers.interval(bounds)})" if bounds else ""
        return LinePoint(
            place,
            verdict.effect,
            (bounds.low, bounds.high) if bounds else None,
            f"{variant}, {load.place_name(at)}: {verdict.decision}, {effect_text(verdict)}{interval}",
            verdict.decision,
            symbol(verdict.decision),
        )

    panels = _panels(experiment, load, compared_variants(experiment), point)
    chart = LineChart(panels, _labels(load), load.unit, margin=experiment.design.equivalence_margin)
    title = f"Throughput against {experiment.baseline}, by {load.unit}"
    return _figure(chart, f"grid-{load.order}-gain", (load.name, title), verdict_table(experiment, load))


def _by_level(experiment: Experiment, load: Load, of: Amounts) -> Figure | None:
    """Return a chart of a metric over levels, with a panel per size."""
    variants = [variant.name for variant in experiment.variants]
    chart = LineChart(_panels(experiment, load, variants, _point_of(load, of)), _labels(load), load.unit)
    table = amount_table(experiment, load, of, has_bounds=True)
    names = (load.name, f"{of.title}, by {load.unit}")
    return _figure(chart, f"grid-{load.order}-{of.metric.name}", names, table)


def _together(experiment: Experiment, found: Sequence[Load]) -> Iterator[Figure]:
    """Yield a chart per query of its rate by issuer, with a panel per load; none for a single load."""
    by_query: dict[bool, list[Load]] = {}
    for load in found:
        issuer, words = issuer_and_words(load.name)
        if issuer in LOOP_CURVES:
            by_query.setdefault(AGGREGATE in words, []).append(load)
    for side_by_side in by_query.values():
        if len(side_by_side) > 1 and (drawn := _side_by_side(experiment, side_by_side)):
            yield drawn


def _side_by_side(experiment: Experiment, side_by_side: Sequence[Load]) -> Figure | None:
    variants = [variant.name for variant in experiment.variants]
    found = {load.name: amounts(experiment, load, THROUGHPUT) for load in side_by_side}
    panels = tuple(
        replace(panel, title=load.name)
        for load in side_by_side
        for panel in _panels(experiment, load, variants, _point_of(load, found[load.name]))
    )
    rows = [
        (load.name, *row)
        for load in side_by_side
        for row in amount_table(experiment, load, found[load.name], has_bounds=True).rows
    ]
    first = side_by_side[0]
    title = f"Executions per second, by {first.unit}"
    table = Table(
        "One query by issuer: executions per second, means over the rounds",
        columns("By", first.corner, *variants, numbers_from=2),
        tuple(rows),
    )
    return _figure(
        LineChart(panels, _labels(first), first.unit),
        f"grid-together-{first.order}",
        ("Side by side", title),
        table,
    )


def _by_size(experiment: Experiment, load: Load, of: Amounts, level: int) -> Figure | None:
    """Return a chart of a metric over database sizes at one level; None for a single size."""
    if len(load.sizes) < 2:
        return None
    point = _point_of(load, of)
    lines = tuple(
        Line(arm, _points(point, load, variant.name, [(size, level) for size in load.sizes]))
        for arm, variant in enumerate(experiment.variants)
    )
    chart = LineChart(
        (Panel(counted(level, load.unit), lines),),
        tuple(map(numbers.size, load.sizes)),
        "database size",
        reference=_shared_buffers(experiment, load.sizes),
    )
    table = amount_table(experiment, load, of, has_bounds=True)
    names = (load.name, f"{of.title}, by database size")
    return _figure(chart, f"grid-{load.order}-size-{level}", names, table)


def _panels(experiment: Experiment, load: Load, variants: Sequence[str], point: PointOf) -> tuple[Panel, ...]:
    """Return a panel per database size, with a line per variant over the levels."""
    arms = {variant.name: arm for arm, variant in enumerate(experiment.variants)}
    return tuple(
        Panel(
            f"{numbers.size(size)} database",
            tuple(
                Line(arms[name], _points(point, load, name, [(size, level) for level in load.levels]))
                for name in variants
            ),
        )
        for size in load.sizes
    )


def _points(
    point: PointOf, load: Load, variant: str, cells: Sequence[tuple[int, int]]
) -> tuple[LinePoint, ...]:
    """Return a variant's points in these (size, level) cells; a cell's index is its place on the axis."""
    return tuple(
        found
        for place, at in enumerate(cells)
        if at in load.workloads and (found := point(load.workloads[at], variant, at, place))
    )


def _point_of(load: Load, of: Amounts) -> PointOf:
    def point(workload: str, variant: str, at: tuple[int, int], place: int) -> LinePoint | None:
        found = of.estimates.get(workload, {}).get(variant)
        if found is None:
            return None
        bounds = (found.bounds[0] / of.unit_size, found.bounds[1] / of.unit_size) if found.bounds else None
        title = f"{variant}, {load.place_name(at)}: {with_bounds(of.metric, found)}"
        return LinePoint(place, found.mean / of.unit_size, bounds, title)

    return point


def _figure(chart: LineChart, key: str, names: tuple[str, str], table: Table) -> Figure | None:
    """Return the figure of a chart; ``names`` are load and title. None for a chart without points."""
    load, title = names
    description = "; ".join(point.title for point in chart.points)
    draw = partial(line_chart, Caption(key, f"{load}, {title}", description), chart)
    return figure(draw, table, title=title) if description else None


def _shared_buffers(experiment: Experiment, sizes: Sequence[int]) -> Reference | None:
    """Return the place of the baseline's shared_buffers among the sizes; None if unknown."""
    text = baseline_values(experiment).get("shared_buffers", "")
    if text.isdecimal():  # without a unit: it may be blocks
        return None
    try:
        size = float(normalise(text, "B"))
    except SettingError:
        return None
    return Reference(place_among(size, sizes), f"shared_buffers {numbers.size(size)}") if size > 0 else None


def _labels(load: Load) -> tuple[str, ...]:
    return tuple(map(str, load.levels))
