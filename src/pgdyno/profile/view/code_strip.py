"""The executed code of programs by address: a figure with a strip per variant, a table, and notes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pgdyno.base import numbers
from pgdyno.profile.records.microarchitecture import PAGE_BYTES, TextLayout
from pgdyno.profile.records.profile_record import TransactionProfile
from pgdyno.report.charts.heat_strip import HeatCell, Strip, heat_strips
from pgdyno.report.charts.svg import NARROW, WIDE, Caption
from pgdyno.report.elements.tables import NOTHING, Column, Figure, Table

_MOST_NAMED = 5

Labelled = tuple[str, TextLayout]


def code_figures(profiles: Sequence[TransactionProfile]) -> Iterator[Figure]:
    """Yield a figure of sampled code and one of simulated code, each with all variants."""
    for labelled in by_origin(profiles):
        yield _figure(labelled)


def by_origin(profiles: Sequence[TransactionProfile]) -> Iterator[tuple[Labelled, ...]]:
    """Yield the variants' sampled layouts, then the simulated ones: only these are comparable."""
    for is_simulated in (False, True):
        found = tuple(
            (one.variant, layout)
            for one in profiles
            for layout in one.layouts
            if layout.is_simulated is is_simulated
        )
        if found:
            yield found


def code_table(labelled: Sequence[Labelled]) -> Table:
    """Return the table of how many places hold most of all executions."""
    titles = ("share of executions", "bytes of code", "lines of 64 B", "pages of 4 kB", "pages of 2 MB")
    columns = (Column("Variant"), *(Column(title, is_number=True) for title in titles))
    rows = tuple(
        (
            variant,
            f"{one.share:.0%}",
            NOTHING if one.code_bytes is None else f"about {one.code_bytes:,}",
            f"{one.lines:,}",
            f"{one.pages:,} of {layout.pages:,}",
            f"{one.large_pages:,}",
        )
        for variant, layout in labelled
        for one in layout.coverage
    )
    return Table(f"{_title(labelled)}: the fewest places that hold", columns, rows)


def code_notes(profiles: Sequence[TransactionProfile]) -> Iterator[str]:
    """Yield notes on code outside the programs, and on missing code."""
    for variant, layout in (pair for labelled in by_origin(profiles) for pair in labelled):
        how = f"{variant}, code by place ({'simulated' if layout.is_simulated else 'sampled'})"
        if layout.elsewhere:
            named = (f"{one.name} {one.share:.1%}" for one in layout.elsewhere[:_MOST_NAMED])
            yield f"{how}: not in {layout.program}, and not shown: {', '.join(named)}"
        yield from (f"{how}: {remark}" for remark in layout.remarks)


def _title(labelled: Sequence[Labelled]) -> str:
    [(_, first), *_] = labelled
    return "Code by place, simulated" if first.is_simulated else "Code by place, sampled"


def _figure(labelled: Sequence[Labelled]) -> Figure:
    table, title = code_table(labelled), _title(labelled)
    described = "; ".join(f"{row[0]}: {row[1]} in {row[4]} pages" for row in table.rows)
    strips = [_strip(*one) for one in labelled]
    key = title.replace(" ", "-").replace(",", "").lower()
    caption = Caption(key, f"{title}: a cell is a page of 4 kB", described)
    wide, narrow = (heat_strips(caption, strips, width=width) for width in (WIDE, NARROW))
    return Figure(f"{title}: each cell is a page of 4 kB of {labelled[0][1].program}", wide, narrow, table)


def _strip(variant: str, layout: TextLayout) -> Strip:
    size = numbers.size(layout.pages * PAGE_BYTES)
    where = f"{len(layout.heat):,} of {layout.pages:,} pages, {size}"
    label = f"{variant}: {layout.counted:,} {layout.unit} in {where}"
    cells = (
        HeatCell(
            page.index,
            page.share,
            f"page {page.index + 1:,}: {page.share:.2%}"
            + (f", mostly {page.function}" if page.function else ""),
        )
        for page in layout.heat
    )
    return Strip(label, layout.pages, tuple(cells))
