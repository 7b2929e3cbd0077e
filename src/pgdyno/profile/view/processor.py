"""The work of the processor for a transaction, and the places of the executed code. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from pgdyno.base import numbers
from pgdyno.base.text import sentence
from pgdyno.profile.records.microarchitecture import (
    INSTRUCTIONS,
    L1D_MISSES,
    PAGE_BYTES,
    DataMisses,
    EventCount,
    Mean,
    Microarchitecture,
    TextLayout,
)
from pgdyno.profile.records.profile_record import TransactionProfile
from pgdyno.report.charts.shares import HeatCell, Strip, heat_strips
from pgdyno.report.charts.svg import Caption
from pgdyno.report.elements.tables import NOTHING, Figure, Table, columns, figure

_FULL = 0.995
_MOST_NAMED = 5

Labelled = tuple[str, TextLayout]


def processor_tables(profile: TransactionProfile) -> Iterator[Table]:
    """Yield the tables of counted figures, then those of simulated figures."""
    for one in (profile.counted, profile.simulated):
        if one is not None:
            if one.slots:
                yield _slots_table(one)
            if one.events:
                yield _events_table(one)
    if profile.data_misses is not None:
        yield _data_misses_table(profile.data_misses)


def processor_notes(profile: TransactionProfile) -> Iterator[str]:
    """Yield notes on sources and limits."""
    for one in (profile.counted, profile.simulated):
        if one is not None:
            yield f"The processor's work for a transaction: {one.source}"
            if one.repeats_within is not None:
                yield f"simulated: the instructions of two equal runs differed by {one.repeats_within:.3%}"
            yield from one.remarks
    if profile.data_misses is not None:
        yield from _data_misses_notes(profile.data_misses, profile.simulated)


def _slots_table(one: Microarchitecture) -> Table:
    heads = columns("Pipeline slots", "share", "95 % interval", numbers_from=1)
    rows = tuple(
        (
            part.name if part.level == 1 else f"of it, {part.name}",
            numbers.share(part.share.value, 1),
            _interval(part.share, scale=100, unit=" %"),
        )
        for part in one.slots
    )
    return Table("Use of the processor's pipeline slots: top-down, counted", heads, rows)


def _events_table(one: Microarchitecture) -> Table:
    between = () if one.is_simulated else ("95 % interval",)
    titles = ("per transaction", *between, "per 1,000 instructions")
    how = "simulated" if one.is_simulated else "counted"
    heads = columns(sentence(how), *titles, "event", numbers_from=1, words_from=1 + len(titles))
    instructions = next((e.per_transaction.value for e in one.events if e.name == INSTRUCTIONS), None)
    rows = [_event_row(event, instructions, is_simulated=one.is_simulated) for event in one.events]
    if one.ipc is not None:
        rows.append(("instructions per cycle", f"{one.ipc.value:.2f}", _interval(one.ipc), NOTHING, NOTHING))
    return Table(f"The processor's work for a transaction, {how}", heads, tuple(rows))


def _data_misses_table(found: DataMisses) -> Table:
    titles = ("Simulated", "L1d misses", "share", "L2 misses", "share", "mostly in")
    heads = columns(*titles, numbers_from=1, words_from=5)
    rows = [
        (
            one.structure,
            _amount(one.l1d),
            _part(one.l1d, found.l1d),
            _amount(one.l2),
            _part(one.l2, found.l2),
            ", ".join(one.functions) or NOTHING,
        )
        for one in found.structures
    ]
    whole = _part(found.l1d, found.l1d), _part(found.l2, found.l2)
    rows.append(("all data misses", _amount(found.l1d), whole[0], _amount(found.l2), whole[1], NOTHING))
    return Table("Data misses by structure, simulated, per transaction", heads, tuple(rows), totals=1)


def _part(part: float, whole: float) -> str:
    return numbers.share(part / whole, 1) if whole else NOTHING


def _data_misses_notes(found: DataMisses, callgrind: Microarchitecture | None) -> Iterator[str]:
    """Yield the source, callgrind's counts for comparison, and limits."""
    yield f"Data misses by structure: {found.source}; {found.transactions:,} transactions"
    events = callgrind.events if callgrind is not None else ()
    counted = {one.name: one.per_transaction.value for one in events}
    if INSTRUCTIONS in counted and L1D_MISSES in counted:
        yield (
            f"simulated: the trace has {_amount(found.instructions)} instructions and {_amount(found.l1d)} "
            "L1d misses per transaction; callgrind's longer run has "
            f"{_amount(counted[INSTRUCTIONS])} and {_amount(counted[L1D_MISSES])}: in the trace, rarely "
            "executed prepared statements are still planned each time"
        )
    yield from found.remarks


def _event_row(event: EventCount, instructions: float | None, *, is_simulated: bool) -> tuple[str, ...]:
    mean = event.per_transaction
    per_thousand = NOTHING
    if instructions and event.name != INSTRUCTIONS:
        per_thousand = f"{1000 * mean.value / instructions:,.2f}"
    source = event.event if event.ran >= _FULL else f"{event.event}, {event.ran:.0%} of the time"
    between = () if is_simulated else (_interval(mean),)
    return (event.name, _amount(mean.value), *between, per_thousand, source)


def _amount(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}"


def _interval(mean: Mean, *, scale: float = 1, unit: str = "") -> str:
    if mean.low is None or mean.high is None:
        return NOTHING
    return f"{_bound(mean.low * scale)} … {_bound(mean.high * scale)}{unit}"


def _bound(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 10 else _amount(value)


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
    return Table(
        f"{_title(labelled)}: the fewest places that hold", columns("Variant", *titles, numbers_from=1), rows
    )


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
    of = f"{title}: each cell is a page of 4 kB of {labelled[0][1].program}"
    return figure(partial(heat_strips, caption, strips), table, title=of)


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
