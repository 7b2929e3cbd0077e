"""Common parts of terminal tables: styles of decisions, sanitised texts. Pure."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap

from rich.console import Console, ConsoleOptions, JustifyMethod, OverflowMethod, RenderableType, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from pgdyno.base.text import printable
from pgdyno.model.experiments.verdict import Decision
from pgdyno.report.elements.tables import Column, Section, Table

ENDLESS = 10_000  # characters

DECISION_STYLES = {
    Decision.BETTER: "bold green",
    Decision.WORSE: "bold red",
    Decision.EQUIVALENT: "cyan",
    Decision.INCONCLUSIVE: "yellow",
}


def plain_text(content: str, style: str = "") -> Text:
    """Return a text verbatim: markup in it is not interpreted."""
    return Text(printable(content), style=style)


def rich_table(
    heads: Sequence[Column],
    rows: Iterable[Sequence[str | Text]],
    *,
    gap: int = 2,
    unbroken: Container[int] = (),
    overflow: OverflowMethod = "ellipsis",
) -> RichTable:
    """Return a table without lines around its cells; columns at the places ``unbroken`` are not wrapped."""
    table = RichTable(box=None, pad_edge=False, padding=(0, gap, 0, 0), header_style="dim")
    for place, head in enumerate(heads):
        side: JustifyMethod = "right" if head.is_number else "left"
        cut: OverflowMethod = "ellipsis" if place in unbroken else overflow
        table.add_column(plain_text(head.title), justify=side, no_wrap=place in unbroken, overflow=cut)
    for row in rows:
        table.add_row(*(plain_text(cell) if isinstance(cell, str) else cell for cell in row))
    return table


def decided_text(text: str, decision: Decision, note: str = "") -> Text:
    """Return a figure in the colour of its decision, followed by a note."""
    return Text.assemble((text, DECISION_STYLES[decision]), (note, "dim"))


def section_parts(one: Section) -> Iterator[RenderableType]:
    """Yield a section's title and its parts."""
    yield plain_text(f"\n{one.title}", "bold")
    yield from map(plain_text, one.sentences)
    if one.table:
        yield PlainTable(one.table)
    yield from map(plain_text, (*one.notes, *one.statements))


@dataclass(frozen=True)
class PlainTable:
    """A table without lines around its cells. If it is too wide, headings are wrapped, not figures."""

    shown: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, with unwrapped headings if they fit."""
        whole = rich_table(self.shown.columns, self.shown.rows)
        natural = console.measure(whole, options=options.update(max_width=ENDLESS)).maximum
        yield whole if natural <= options.max_width else rich_table([*self._broken()], self.shown.rows)

    def _broken(self) -> Iterator[Column]:
        """Yield the headings, wrapped to the width of the cells below or of their longest word."""
        for place, column in enumerate(self.shown.columns):
            cells = (len(row[place]) for row in self.shown.rows)
            words = (len(word) for word in column.title.split())
            title = "\n".join(wrap(column.title, max((1, *cells, *words)), break_on_hyphens=False))
            yield replace(column, title=title)
