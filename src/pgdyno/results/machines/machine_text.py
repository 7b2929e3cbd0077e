"""A comparison of two machines for the terminal, with column widths and colours. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.table import Table as RichTable

from pgdyno.measure.view.wording import legend, symbol
from pgdyno.model.experiments.machine_comparison import MachineComparison
from pgdyno.report.elements.tables import Table
from pgdyno.report.elements.terminal import DECISION_STYLES, plain_text
from pgdyno.results.machines.machine_tables import (
    SCOPE,
    answer,
    derived_tables,
    difference_tables,
    machine_table,
    margin,
    metric_tables,
    notes,
    side_line,
    withheld,
)

_DIFFERENCE_WIDTHS = (30, 22, 22, 30)
"""Column widths, equal in all tables of differences; 110 characters including gaps."""

_STYLES = {f"{symbol(decision)} {decision}": style for decision, style in DECISION_STYLES.items()}


def machine_comparison_text(found: MachineComparison) -> RenderableType:
    """Return the ratios, figures by price and frequency, and all other differences."""
    return Group(*_parts(found))


def _parts(found: MachineComparison) -> Iterator[RenderableType]:
    yield plain_text(found.question, "bold")
    yield from (plain_text(side_line(side)) for side in found.sides)
    for warning in found.warnings:
        yield plain_text(f"{warning[:1].upper()}{warning[1:]}", "bold red")
    yield plain_text(answer(found))
    yield from _tables(metric_tables(found))
    yield from (plain_text(reason, "dim") for reason in withheld(found))
    limit = margin(found)
    yield plain_text(legend(limit) if limit is not None else "", "dim")
    yield plain_text(SCOPE, "dim")
    yield from _tables(derived_tables((*found.per_price, *found.per_frequency), found))
    yield from _tables([machine_table(found.machine)])
    differences = [*difference_tables(found.differences)]
    if not differences:
        yield plain_text("\nNothing else is known to differ, and nothing that matters is unknown.", "bold")
    yield from _tables(differences, _DIFFERENCE_WIDTHS)
    if found.left_out:
        yield plain_text(f"\nNot compared: {'; '.join(found.left_out)}", "dim")
    yield from (plain_text(f"\n{note}", "dim") for note in notes(found))


def _tables(tables: Iterable[Table], widths: tuple[int, ...] | None = None) -> Iterator[RenderableType]:
    for table in tables:
        yield plain_text(f"\n{table.caption}", "bold")
        yield _table(table, widths)


def _table(table: Table, widths: tuple[int, ...] | None) -> RichTable:
    shown = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for position, column in enumerate(table.columns):
        shown.add_column(
            plain_text(column.title),
            justify="right" if column.is_number else "left",
            width=widths[position] if widths else None,
            no_wrap=column.title == "B is",  # figures may wrap at their spaces
            overflow="fold",
        )
    for row in table.rows:
        shown.add_row(*(plain_text(cell, _STYLES.get(cell, "")) for cell in row))
    return shown
