"""The terminal's table of verdicts: a heading for each workload, and a line for each metric. Pure.

Variants have a column if lines fit with it, otherwise headings. Figures are never broken.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from pgdyno.report.elements.terminal import plain_text

_INDENT, _GAP = 2, 2  # characters
_LEAST_TITLE = 16  # characters; on a narrower terminal, figures are truncated


@dataclass(frozen=True)
class MetricRow:
    """A verdict. ``title`` is that of its metric; ``cells`` are figures, then the decision."""

    headings: tuple[str, ...]  # the workload, and remarks on it
    variant: str
    title: Text
    cells: tuple[Text, ...]


@dataclass(frozen=True)
class MetricsTable:
    """Rows in order of workload and variant; ``heads`` are the column heads of their cells."""

    heads: tuple[str, ...]
    rows: Sequence[MetricRow]

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the heads, then each workload's headings and rows."""
        lines = _Lines(self.heads, self.rows)
        if len({row.variant for row in self.rows}) > 1:
            lines = _Lines(("variant", *self.heads), [*map(_with_variant, self.rows)])
            if lines.width > options.max_width:
                lines = _Lines(self.heads, [*map(_below_variant, self.rows)])
        yield from lines.within(options.max_width)


def _with_variant(row: MetricRow) -> MetricRow:
    return replace(row, cells=(plain_text(row.variant), *row.cells))


def _below_variant(row: MetricRow) -> MetricRow:
    workload, *remarks = row.headings
    return replace(row, headings=(f"{workload}, {row.variant}", *remarks))


@dataclass(frozen=True)
class _Lines:
    heads: tuple[str, ...]
    rows: Sequence[MetricRow]

    @property
    def width(self) -> int:
        """The width of lines with unbroken titles."""
        return self._titles + self._taken

    def within(self, width: int) -> Iterator[RenderableType]:
        """Yield the lines; titles are broken if lines would be too wide."""
        first = max(_LEAST_TITLE, min(self._titles, width - self._taken))
        yield self._table(first, [(plain_text(""), *(plain_text(head, "dim") for head in self.heads))])
        for (workload, *remarks), rows in groupby(self.rows, lambda row: row.headings):
            yield plain_text(workload, "bold")
            yield from (_indented(plain_text(remark, "dim")) for remark in remarks)
            yield self._table(first, ((_indented(row.title), *row.cells) for row in rows))

    @property
    def _titles(self) -> int:
        return _INDENT + max(row.title.cell_len for row in self.rows)

    @property
    def _taken(self) -> int:
        return sum(self._widths) + _GAP * len(self.heads)

    @property
    def _widths(self) -> list[int]:
        cells = ((row.cells[place].cell_len for row in self.rows) for place in range(len(self.heads)))
        return [max(len(head), *ones) for head, ones in zip(self.heads, cells, strict=True)]

    def _table(self, first: int, rows: Iterable[tuple[RenderableType, ...]]) -> Table:
        table = Table(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=False)
        table.add_column(width=first, overflow="fold")
        for head, width in zip(self.heads, self._widths, strict=True):
            is_word = head in {"variant", self.heads[-1]}
            table.add_column(width=width, justify="left" if is_word else "right", no_wrap=True)
        for row in rows:
            table.add_row(*row)
        return table


def _indented(text: Text) -> Padding:
    return Padding(text, (0, 0, 0, _INDENT))
