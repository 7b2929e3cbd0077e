"""A captured workload as text for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, median

from pgdyno.base import numbers
from pgdyno.model.experiments.captured import (
    ArrayOf,
    CapturedTransaction,
    CapturedWorkload,
    ColumnValue,
    Constant,
    NewKey,
    Omitted,
    OneOf,
    Ordinal,
    Parameter,
    RangeEnd,
    ReturnedValue,
    SameValue,
)
from pgdyno.model.experiments.invariant import Invariant, Is, NoRows, Unchanged, as_shown

_SHOWN = 70  # characters of a statement
_MOST_OMITTED = 10


def workload_text(workload: CapturedWorkload) -> str:
    """Return a workload's origin, its transactions and its gaps."""
    lines = [
        f"{workload.name}: {workload.database} on PostgreSQL {workload.server_version}{_seen_for(workload)}",
        (
            f"  {_counted(len(workload.statements), 'statement')} in "
            f"{_counted(len(workload.transactions), 'kind')} of transaction, "
            f"{_counted(workload.clients, 'active client')} on average, "
            f"{'read-only' if workload.is_read_only else 'reads and writes'}"
        ),
        f"  {numbers.share(workload.replayed_share)} of the calls can be replayed",
    ]
    lines += _pauses(workload)
    whole = sum(one.weight for one in workload.transactions)
    for one in workload.transactions:
        lines += ["", *_transaction(one, whole)]
    lines += _omitted(workload.omitted)
    lines += _invariants(workload.invariants)
    lines += ["", "Notes:", *(f"  {note}" for note in workload.notes)] if workload.notes else []
    return "\n".join(lines) + "\n"


def _pauses(workload: CapturedWorkload) -> Iterator[str]:
    if not workload.pauses_s:
        return
    if not any(workload.pauses_s):
        yield "  sessions begin the next transaction without a pause"
        return
    typical, mean = (numbers.duration(of(workload.pauses_s)) for of in (median, fmean))
    yield (
        f"  {_counted(workload.pausing_clients, 'session')} pausing between two transactions for "
        f"{typical} (median; {mean} on average); replay --pauses reproduces the pauses"
    )


def _seen_for(workload: CapturedWorkload) -> str:
    return f", seen for {numbers.duration(workload.seconds)}" if workload.seconds else ""


def _transaction(one: CapturedTransaction, whole: float) -> Iterator[str]:
    yield f"{numbers.share(one.weight / whole)} of transactions:"
    for call in one.calls:
        parameters = ", ".join(map(_parameter, call.parameters))
        times = "" if call.times == 1 else f"{call.times:.3g} × "
        yield f"  {times}{call.statement}{f' ({parameters})' if parameters else ''}"


def _parameter(one: Parameter) -> str:
    match one:
        case ColumnValue(column):
            shown = _without_schema(column)
        case ArrayOf(column, length):
            shown = f"{length} of {_without_schema(column)}"
        case NewKey(column):
            shown = f"new {_without_schema(column)}"
        case SameValue(parameter, statement, plus):
            of = "" if statement is None else f" of {statement}"
            shown = f"${parameter}{of}{f' + {plus}' if plus else ''}"
        case RangeEnd(parameter, is_lower=is_lower):
            shown = f"{'beginning of the range to' if is_lower else 'end of the range from'} ${parameter}"
        case ReturnedValue(number, statement, plus):
            shown = f"column {number} from {statement}{f' + {plus}' if plus else ''}"
        case Ordinal():
            shown = "number of the call"
        case Constant(value):
            shown = "NULL" if value is None else repr(value)
        case OneOf(values):
            shown = f"one of {_counted(len(values), 'value')}"
        case _:
            shown = f"any {type(one).__name__.lower()}"
    return shown


def _without_schema(column: str) -> str:
    return column.partition(".")[2]


def _invariants(invariants: Sequence[Invariant]) -> Iterator[str]:
    if not invariants:
        return
    yield from ("", "Invariants, checked on each server before and after a load:")
    for one in invariants:
        match one.expected:
            case Is(value):
                expected = f"returns {as_shown(value)}"
            case Unchanged():
                expected = "returns the same after the load"
            case NoRows():
                expected = "returns no row"
        yield f"  {one.name}: {_short(one.sql)} {expected}"


def _omitted(omitted: Sequence[Omitted]) -> Iterator[str]:
    if not omitted:
        return
    yield from ("", f"Not replayed ({len(omitted)}):")
    for one in omitted[:_MOST_OMITTED]:
        yield f"  {one.seen.calls} calls, {one.seen.time_ms:.0f} ms: {_short(one.sql)}"
        yield f"    {one.why}"
    if len(omitted) > _MOST_OMITTED:
        yield f"  and {len(omitted) - _MOST_OMITTED} more: see the file"


def _short(sql: str) -> str:
    line = " ".join(sql.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
