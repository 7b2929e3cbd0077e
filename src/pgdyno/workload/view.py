"""A captured workload, its workers and the likeness of its replay, as text and tables. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean, median

from pgdyno.base import numbers
from pgdyno.base.text import counted, lower_first, shortened
from pgdyno.model.experiments.captured import (
    ArrayOf,
    CapturedTransaction,
    CapturedWorkload,
    ColumnValue,
    Constant,
    Invariant,
    Is,
    NewKey,
    NoRows,
    Omitted,
    OneOf,
    Ordinal,
    Parameter,
    RangeEnd,
    ReturnedValue,
    SameValue,
    Unchanged,
    as_shown,
)
from pgdyno.model.experiments.experiment import Experiment
from pgdyno.model.experiments.likeness import Likeness, likeness_words
from pgdyno.postgres.parallel_degree import StatementDegree
from pgdyno.report.elements.tables import NOTHING, Table, columns

_SHOWN = 70  # characters of a statement
_MOST_OMITTED = 10


def workload_text(workload: CapturedWorkload) -> str:
    """Return a workload's origin, its transactions and its gaps."""
    seen_for = f", seen for {numbers.duration(workload.seconds)}" if workload.seconds else ""
    lines = [
        f"{workload.name}: {workload.database} on PostgreSQL {workload.server_version}{seen_for}",
        (
            f"  {counted(len(workload.statements), 'statement')} in "
            f"{counted(len(workload.transactions), 'kind')} of transaction, "
            f"{counted(workload.clients, 'active client')} on average, "
            f"{'read-only' if workload.is_read_only else 'reads and writes'}"
        ),
        f"  {numbers.share(workload.replayed_share)} of the calls can be replayed",
    ]
    lines += _pauses(workload)
    whole = sum(one.weight for one in workload.transactions)
    for one in workload.transactions:
        lines += ["", *_transaction(one, whole)]
    lines += _favours(workload)
    lines += _omitted(workload.omitted)
    lines += _invariants(workload.invariants)
    lines += ["", "Notes:", *(f"  {note}" for note in workload.notes)] if workload.notes else []
    return "\n".join(lines) + "\n"


def _favours(workload: CapturedWorkload) -> Iterator[str]:
    favours = [one for one in workload.statements if one.favours]
    if favours:
        yield from ("", "Some values are used more often than their rows are many, as in the original:")
    for one in favours:
        yield f"  {one.name}: {', '.join(f'${number}' for number in one.favours)}"


def _pauses(workload: CapturedWorkload) -> Iterator[str]:
    if not workload.pauses_s:
        return
    if not any(workload.pauses_s):
        yield "  sessions begin the next transaction without a pause"
        return
    typical, mean = (numbers.duration(of(workload.pauses_s)) for of in (median, fmean))
    yield (
        f"  {counted(workload.pausing_clients, 'session')} pausing between two transactions for "
        f"{typical} (median; {mean} on average); replay --pauses reproduces the pauses"
    )


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
            shown = f"one of {counted(len(values), 'value')}"
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
    return shortened(" ".join(sql.split()), _SHOWN)


def degrees_table(workload: CapturedWorkload, found: Sequence[StatementDegree]) -> Table:
    """Return a table of the statements that may use workers, with their number and the deciding limits."""
    of = "time" if any(one.seen.time_ms for one in workload.statements) else "calls"
    return Table(
        f"Workers planned for statements of {workload.name}",
        columns("Statement", f"of the {of}", "workers", "decided by", numbers_from=1, words_from=3),
        tuple(
            (one.statement, numbers.share(one.share, 1), *_decided(one)) for one in found if not one.is_never
        ),
    )


def degrees_notes(workload: CapturedWorkload, found: Sequence[StatementDegree]) -> Iterator[str]:
    """Yield notes on the statements not in the table, and on the table's validity."""
    if never := [one for one in found if one.is_never]:
        share = numbers.share(sum(one.share for one in never), 1)
        yield (
            f"never with workers: {counted(len(never), 'statement')} more, {share}; PostgreSQL plans no "
            "workers for statements that write rows, or begin or end a transaction"
        )
    if workload.omitted:
        yield f"not planned: {counted(len(workload.omitted), 'statement')} that cannot be replayed"
    yield (
        "parameters have typical values from the planner's statistics; with other values the number of "
        "workers can differ, due to partition pruning or different row counts"
    )


def _decided(one: StatementDegree) -> tuple[str, str]:
    if one.degree is None:
        return NOTHING, one.why_none or ""
    return str(one.degree.planned), " and ".join(cause.what for cause in one.degree.causes)


def likeness_sentences(experiment: Experiment) -> Iterator[str]:
    """Yield a sentence for each captured workload with a known likeness."""
    for workload, found in experiment.likenesses.items():
        yield f"{workload}: {lower_first(likeness_words(found))}"


def likeness_table(found: Likeness) -> Table:
    """Return a table of each statement's shares and time per call, in the original and in the replay."""
    quantities = tuple(one for one in found.by_quantity if one not in found.of_transactions)
    heads = columns("Statement", *quantities, "ms/call", numbers_from=1)
    rows = tuple(
        (
            one.name,
            *(f"{one.original[quantity]:.1%} → {one.replay[quantity]:.1%}" for quantity in quantities),
            f"{one.original_ms:.3f} → {NOTHING if one.replay_ms is None else f'{one.replay_ms:.3f}'}",
        )
        for one in sorted(found.statements, key=lambda one: -one.original.get("time", one.original["calls"]))
    )
    return Table("Each statement's share of the server's counts, original → replay", heads, rows)
