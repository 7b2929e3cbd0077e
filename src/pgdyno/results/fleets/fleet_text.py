"""Comparisons on several machines for the terminal, each with a text-mode forest plot. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.base.text import aligned, sentence, wrapped
from pgdyno.measure.view.wording import legend
from pgdyno.model.experiments.fleet import Fleet, FleetComparison
from pgdyno.model.experiments.verdict import Interval
from pgdyno.report.charts.forest import ForestRow
from pgdyno.report.charts.scales import RatioScale, interval_extent, ratio_scale
from pgdyno.report.elements.tables import Table
from pgdyno.results.fleets.fleet_sentences import (
    answer,
    experiment_table,
    forest_rows,
    grouped,
    headline,
    is_part,
    leading,
    machine_table,
    method_notes,
    others_table,
    remarks,
    title,
)

_COLUMNS = 110
_PLOT = 37  # characters: the rest of 110 after the figures


def fleet_text(fleet: Fleet) -> str:
    """Return the report as text: machines, answer, and a forest plot per comparison."""
    return "\n".join(_lines(fleet)) + "\n"


def _lines(fleet: Fleet) -> Iterator[str]:
    yield headline(fleet)
    yield from ("", *_table(machine_table(fleet.machines)))
    yield from ("", *_table(experiment_table(fleet.machines)))
    for warning in fleet.warnings:
        yield f"\n{wrapped(sentence(warning), _COLUMNS, hanging='')}"
    yield f"\n{wrapped(answer(fleet), _COLUMNS, hanging='')}"
    for first, ones in zip(leading(fleet), grouped(fleet), strict=True):
        yield f"\n{title(first)}"
        yield from _forest(first)
        yield from (f"  {remark}" for remark in remarks(first, fleet))
        if table := others_table(ones):
            yield from _table(table, "  ")
    yield f"\n{legend(fleet.margin)}"
    for note in method_notes(fleet):
        yield wrapped(note, _COLUMNS, hanging="")
    if fleet.left_out:
        yield "\nNot combined"
        yield from (f"  {why}" for why in fleet.left_out)


def _forest(one: FleetComparison) -> Iterator[str]:
    rows = [*forest_rows(one)]
    intervals = [(row.interval.low, row.interval.point, row.interval.high) for row in rows if row.interval]
    scale = ratio_scale(interval_extent(intervals), 0.0, _PLOT - 1.0)
    cells = [(f"  {row.label}" if is_part(row) else row.label, row.effect, row.bounds) for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row, (label, effect, bounds) in zip(rows, cells, strict=True):
        figures = f"{label:<{widths[0]}}  {effect:>{widths[1]}}  {bounds:>{widths[2]}}"
        yield f"  {figures}  {_plot(row, scale)}  {row.decision_text}".rstrip()


def _plot(row: ForestRow, scale: RatioScale) -> str:
    """Return an interval in characters: a dotted line marks no change, an arrow an end beyond the axis."""
    drawn = [" "] * _PLOT
    drawn[round(scale.place(1.0))] = "┊"
    if row.interval is not None:
        _draw(drawn, row.interval, scale)
        if row.has_mark:
            drawn[round(scale.place(row.interval.point))] = "○" if is_part(row) else "●"
    return "".join(drawn)


def _draw(drawn: list[str], interval: Interval, scale: RatioScale) -> None:
    low, high = (round(scale.place(end)) for end in (interval.low, interval.high))
    drawn[low : high + 1] = "─" * (high - low + 1)
    drawn[low] = "├" if scale.holds(interval.low) else "◀"
    drawn[high] = "┤" if scale.holds(interval.high) else "▶"


def _table(table: Table, indent: str = "") -> list[str]:
    return aligned([(table.caption, *(one.title for one in table.columns[1:])), *table.rows], indent)
