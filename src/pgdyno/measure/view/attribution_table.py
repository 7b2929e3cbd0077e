"""The figure of the worth of each part of a plan. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from markupsafe import Markup

from pgdyno.base import numbers
from pgdyno.measure.verdicts.part_worths import attributions, whole_name
from pgdyno.measure.view.attribution_text import AttributionRow, change, rows_of
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.report.charts.svg import Caption
from pgdyno.report.charts.waterfall import Fall, Step, waterfall
from pgdyno.report.elements.tables import NOTHING, Column, Figure, Table, figure


def attribution_figure(experiment: Experiment) -> Figure | None:
    """Return the waterfall of every workload; None if nothing was taken apart, or too few rounds count."""
    found = {one.workload: rows_of(one, whole_name(experiment)) for one in attributions(experiment)}
    if not found:
        return None
    level = numbers.share(experiment.design.level)
    table = Table(
        "The worth of each part: changes of throughput",
        (
            Column("Workload"),
            Column("Part"),
            Column("Worth", is_number=True),
            Column(f"{level} interval", is_number=True),
            Column("Alone", is_number=True),
            Column("In the whole", is_number=True),
            Column(""),
        ),
        tuple(_cells(workload, row) for workload, rows in found.items() for row in rows),
    )
    caption = Caption(
        "attribution",
        "From the baseline to the whole, part by part",
        "; ".join(
            f"{workload}, {row.label}: {change(row.effect)} ({numbers.interval(row.effect)})"
            for workload, rows in found.items()
            for row in rows
        ),
    )
    falls = [Fall(workload, tuple(_steps(rows))) for workload, rows in found.items()]

    def draw(width: float) -> Markup:
        return waterfall(caption, falls, width=width)

    return figure(draw, table, title="The worth of each part")


def _cells(workload: str, row: AttributionRow) -> tuple[str, ...]:
    apart = (NOTHING if one is None else change(one) for one in (row.alone, row.left_out))
    return (workload, row.label, change(row.effect), numbers.interval(row.effect), *apart, row.remark)


def _steps(rows: Sequence[AttributionRow]) -> Iterator[Step]:
    reached = 1.0
    for row in rows:
        yield Step(row.label, row.remark, 1.0 if row.is_sum else reached, row.effect, _style(row))
        reached *= row.effect.point


def _style(row: AttributionRow) -> str:
    if row.is_sum:
        return "whole"
    if row.is_rest:
        return "equivalent"
    return "better" if row.effect.point >= 1 else "worse"
