"""Comparisons on several machines as one HTML file. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.base import numbers
from pgdyno.measure.view.words import SIGNS, direction_hint, metric_of
from pgdyno.model.experiments.fleet import Fleet, FleetComparison
from pgdyno.report.charts.forest import ForestGroup, forest_plot
from pgdyno.report.charts.svg import Caption
from pgdyno.report.elements.html import render
from pgdyno.report.elements.tables import Figure, Table, columns, figure
from pgdyno.results.fleets.fleet_words import (
    answer,
    experiment_table,
    forest_rows,
    grouped,
    headline,
    leading,
    machine_table,
    method_notes,
    others_table,
    remarks,
    title,
)

_PAGE = "fleet.html.j2"


@dataclass(frozen=True)
class _Section:
    """One workload and variant: the forest plot, remarks, other metrics."""

    title: str
    forest: Figure
    remarks: tuple[str, ...]
    others: Table | None


def render_fleet(fleet: Fleet) -> str:
    """Return the whole page."""
    sections = [
        _Section(
            title(first), _figure(first, fleet.margin, number), (*remarks(first, fleet),), others_table(ones)
        )
        for number, (first, ones) in enumerate(zip(leading(fleet), grouped(fleet), strict=True))
    ]
    return render(
        _PAGE,
        fleet=fleet,
        headline=headline(fleet),
        answer=answer(fleet),
        machines=machine_table(fleet.machines),
        experiments=experiment_table(fleet.machines),
        sections=sections,
        notes=method_notes(fleet),
        signs=SIGNS,
        margin=numbers.share(fleet.margin),
    )


def _figure(one: FleetComparison, margin: float, number: int) -> Figure:
    metric = metric_of(one.metric, one.operation)
    rows = tuple(forest_rows(one))
    group = ForestGroup(metric.title, direction_hint(metric), rows)
    cells = tuple((row.label, row.effect, row.bounds, row.decision_text) for row in rows)
    caption = Caption(f"fleet-{number}", title(one), "; ".join(" ".join(filter(None, row)) for row in cells))
    table = Table(title(one), columns("", "effect", "interval", "verdict", numbers_from=1), cells)
    return figure(
        lambda width: forest_plot(caption, [group], margin=margin, width=width), table, title=title(one)
    )
