"""Common parts of terminal tables: styles of decisions, sanitised texts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from textwrap import wrap

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from pgdyno.base.text import printable
from pgdyno.model.experiments.verdict import Decision
from pgdyno.report.elements.tables import Table

_ENDLESS = 10_000  # characters

DECISION_STYLES = {
    Decision.BETTER: "bold green",
    Decision.WORSE: "bold red",
    Decision.EQUIVALENT: "cyan",
    Decision.INCONCLUSIVE: "yellow",
}


def plain_text(content: str, style: str = "") -> Text:
    """Return a text verbatim: markup in it is not interpreted."""
    return Text(printable(content), style=style)


@dataclass(frozen=True)
class PlainTable:
    """A table without lines around its cells. If it is too wide, headings are wrapped, not figures."""

    shown: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, with unwrapped headings if they fit."""
        whole = self._table([column.title for column in self.shown.columns])
        natural = console.measure(whole, options=options.update(max_width=_ENDLESS)).maximum
        yield whole if natural <= options.max_width else self._table([*self._broken()])

    def _broken(self) -> Iterator[str]:
        """Yield the headings, wrapped to the width of the cells below or of their longest word."""
        for place, column in enumerate(self.shown.columns):
            cells = (len(row[place]) for row in self.shown.rows)
            words = (len(word) for word in column.title.split())
            yield "\n".join(wrap(column.title, max((1, *cells, *words)), break_on_hyphens=False))

    def _table(self, titles: Iterable[str]) -> RichTable:
        table = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
        for title, column in zip(titles, self.shown.columns, strict=True):
            table.add_column(plain_text(title), justify="right" if column.is_number else "left")
        for row in self.shown.rows:
            table.add_row(*map(plain_text, row))
        return table
