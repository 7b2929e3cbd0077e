"""Common parts of terminal tables: styles of decisions, sanitised texts. Pure."""

from __future__ import annotations

from rich.table import Table as RichTable
from rich.text import Text

from pgdyno.model.experiments.verdict import Decision
from pgdyno.model.terminal import printable
from pgdyno.report.elements.tables import Table

DECISION_STYLES = {
    Decision.BETTER: "bold green",
    Decision.WORSE: "bold red",
    Decision.EQUIVALENT: "cyan",
    Decision.INCONCLUSIVE: "yellow",
}


def plain_text(content: str, style: str = "") -> Text:
    """Return a text as it is: markup in it is not interpreted."""
    return Text(printable(content), style=style)


def plain_table(shown: Table) -> RichTable:
    """Return a table without lines around its cells."""
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in shown.columns:
        table.add_column(plain_text(column.title), justify="right" if column.is_number else "left")
    for row in shown.rows:
        table.add_row(*map(plain_text, row))
    return table
