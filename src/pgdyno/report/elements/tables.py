"""Elements of a page: tables, and charts with their numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from markupsafe import Markup

from pgdyno.report.charts.svg import NARROW, WIDE

NOTHING = "–"
"""Shown instead of a missing figure."""


@dataclass(frozen=True)
class Column:
    """A column's title, and whether its cells are numbers (right-aligned)."""

    title: str
    is_number: bool = False


@dataclass(frozen=True)
class Table:
    """A table. ``caption`` is its title.

    The last ``totals`` rows sum up the others. ``lesson`` is the sentence below the table.
    Shapes: every row has one cell per column.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    totals: int = 0
    lesson: str = ""


@dataclass(frozen=True)
class Section:
    """Findings under a title: sentences, a table, notes on it, and statements to copy. All may be empty."""

    title: str
    sentences: tuple[str, ...] = ()
    table: Table | None = None
    notes: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()


@dataclass(frozen=True)
class StyledCell:
    """A cell: its figure, a second line in small print, and a style ("missed", a decision, or none).

    ``narrow`` and ``narrow_note`` stand for both on a terminal; ``text`` is shown if ``narrow`` is empty.
    """

    text: str
    note: str = ""
    style: str = ""
    narrow: str = ""
    narrow_note: str = ""


@dataclass(frozen=True)
class StyledTable:
    """A table with decisions in its cells. ``corner`` titles the rows, ``heads`` the columns.

    Shapes: every row has one cell per head.
    """

    title: str
    caption: str
    heads: tuple[StyledCell, ...]
    rows: tuple[tuple[str, tuple[StyledCell, ...]], ...]
    corner: str = "Variant"


@dataclass(frozen=True)
class Figure:
    """A chart drawn for both widths, and the numbers behind it."""

    title: str
    wide: Markup
    narrow: Markup
    table: Table


def columns(
    *titles: str, numbers_from: int | None = None, words_from: int | None = None
) -> tuple[Column, ...]:
    """Return columns with these titles; those from ``numbers_from`` up to ``words_from`` contain numbers."""
    first, end = (len(titles) if place is None else place for place in (numbers_from, words_from))
    return tuple(Column(title, is_number=first <= place < end) for place, title in enumerate(titles))


def figure(draw: Callable[..., Markup], table: Table, *, title: str) -> Figure:
    """Return a figure; ``draw`` is called with each ``width`` in px."""
    return Figure(title, draw(width=WIDE), draw(width=NARROW), table)
