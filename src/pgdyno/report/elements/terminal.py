"""Common parts of terminal tables: styles of decisions, sanitised texts. Pure."""

from __future__ import annotations

import unicodedata

from rich.table import Table as RichTable
from rich.text import Text

from pgdyno.model.experiments.verdict import Decision
from pgdyno.report.elements.tables import Table

DECISION_STYLES = {
    Decision.BETTER: "bold green",
    Decision.WORSE: "bold red",
    Decision.EQUIVALENT: "cyan",
    Decision.INCONCLUSIVE: "yellow",
}

_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of control, format (bidirectional text among them), lone surrogates, and separators of lines."""


def plain_text(content: str, style: str = "") -> Text:
    """Return a text as it is: markup in it is not interpreted."""
    return Text("\n".join(printable(line) for line in content.split("\n")), style=style)


def plain_table(shown: Table) -> RichTable:
    """Return a table without lines around its cells."""
    table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in shown.columns:
        table.add_column(plain_text(column.title), justify="right" if column.is_number else "left")
    for row in shown.rows:
        table.add_row(*map(plain_text, row))
    return table


def printable(content: str) -> str:
    """Return a text without characters that steer a terminal or cannot be written.

    A name must not be able to do that, nor to hide a part of a line or turn it around.
    """
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in _STEERING else c for c in content
    )
