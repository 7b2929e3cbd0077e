"""The processor's work for a transaction, as tables and notes."""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.base import numbers
from pgdyno.profile.records.microarchitecture import (
    INSTRUCTIONS,
    L1D_MISSES,
    DataMisses,
    EventCount,
    Mean,
    Microarchitecture,
)
from pgdyno.profile.records.profile_record import TransactionProfile
from pgdyno.report.elements.tables import NOTHING, Column, Table

_FULL = 0.995


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
    columns = (
        Column("Pipeline slots"),
        Column("share", is_number=True),
        Column("95 % interval", is_number=True),
    )
    rows = tuple(
        (
            part.name if part.level == 1 else f"of it, {part.name}",
            numbers.share(part.share.value, 1),
            _interval(part.share, scale=100, unit=" %"),
        )
        for part in one.slots
    )
    return Table("Use of the processor's pipeline slots: top-down, counted", columns, rows)


def _events_table(one: Microarchitecture) -> Table:
    between = () if one.is_simulated else ("95 % interval",)
    titles = ("per transaction", *between, "per 1,000 instructions")
    columns = (
        Column("Simulated" if one.is_simulated else "Counted"),
        *(Column(title, is_number=True) for title in titles),
        Column("event"),
    )
    instructions = next((e.per_transaction.value for e in one.events if e.name == INSTRUCTIONS), None)
    rows = [_event_row(event, instructions, is_simulated=one.is_simulated) for event in one.events]
    if one.ipc is not None:
        rows.append(("instructions per cycle", f"{one.ipc.value:.2f}", _interval(one.ipc), NOTHING, NOTHING))
    how = "simulated" if one.is_simulated else "counted"
    return Table(f"The processor's work for a transaction, {how}", columns, tuple(rows))


def _data_misses_table(found: DataMisses) -> Table:
    titles = ("L1d misses", "share", "L2 misses", "share")
    columns = (
        Column("Simulated"),
        *(Column(title, is_number=True) for title in titles),
        Column("mostly in"),
    )
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
    return Table("Data misses by structure, simulated, per transaction", columns, tuple(rows), totals=1)


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
