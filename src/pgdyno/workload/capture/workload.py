"""Derives a workload from statement counts and session sightings, or from a log."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median_low

from pgdyno.base import numbers
from pgdyno.base.text import listed
from pgdyno.model.experiments.captured import (
    QUANTITIES,
    CapturedStatement,
    CapturedWorkload,
    Omitted,
    Protocol,
    Quantity,
    RangeEnd,
    SameValue,
)
from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.statement_counts import Ended, NewCounts, SightedEnd, SightedWait, Sighting
from pgdyno.workload.capture.arguments import NOTHING_NAMED, NamedObjects
from pgdyno.workload.capture.block_ends import BlockEnds, notes_on_ends, with_ends
from pgdyno.workload.capture.calls import KeptValues, Statements, control
from pgdyno.workload.capture.counted_texts import lengthened
from pgdyno.workload.capture.name_resolution import is_in_several_schemas
from pgdyno.workload.capture.parameters import Parameters, parameters_of
from pgdyno.workload.capture.protocol import UNKNOWN_PROTOCOL, protocol_of
from pgdyno.workload.capture.ranges import on_its_clock
from pgdyno.workload.capture.row_use import RowUse, row_use
from pgdyno.workload.capture.singles import CountedTransactions
from pgdyno.workload.capture.statements import (
    QUERIES_OR_WITHIN,
    Replayable,
    TransactionPart,
    base_name,
    executable,
    is_of_others,
    look_at,
    note_on,
    shown,
)
from pgdyno.workload.capture.syntax import parameter_count
from pgdyno.workload.capture.ties import Inferred, Place, notes_on_inferred
from pgdyno.workload.capture.transactions import Grouping, SeenTransaction, group, known, notes_on_kinds

# Not time: durations in a log include the waits of commits, which pg_stat_statements does not count.
_COUNTED_BY_LOGS: tuple[Quantity, ...] = ("calls",)
_MOSTLY = 0.95  # of the calls: a statement that returns a row so often is assumed to always return one
_WITHOUT_CONSTANTS = "its constants are unknown and cannot be replaced by parameters"
_NOT_SEEN = "it must run in a transaction, but was not seen in one"
_WRITES = re.compile(r"\b(insert|update|merge)\b", re.IGNORECASE)
_MOST_SHARES = 5  # in a note
_WITHOUT_TEXT = "the server no longer has its text, or it is not UTF-8"


@dataclass(frozen=True)
class LogKnowledge:
    """Additional information from a log: transactions, and values of parameters.

    ``numbers`` are numbers and times among the parameters of some calls, by statement and parameter. ``kept``
    are all values if they are kept; ``full`` are parameters that had more values than that. ``earlier`` maps
    a parameter to earlier ones of its transaction with the same value. ``protocol`` is that of most calls.
    """

    transactions: Sequence[SeenTransaction]
    numbers: Mapping[int, Sequence[Mapping[int, float]]]
    kept: KeptValues
    full: Collection[Place]
    earlier: Mapping[Place, Sequence[Place]]
    inferred: Inferred
    notes: tuple[str, ...]
    protocol: Protocol | None = None


@dataclass(frozen=True)
class Observation:
    """Counts and sightings of a server's load.

    ``types`` has the types of statements' parameters, or the server's error message; ``clients`` is the mean
    number of sessions in a transaction, ``sessions`` the largest number of connected ones that worked.
    ``calls_by_id`` are the calls of each query id of a statement. ``writing`` are the names of functions that
    may write. ``assumed`` are notes on assumed types, by statement. ``log`` is set if a log was read; then
    there are no sightings.
    """

    name: str
    server_version: str
    cluster: int
    database: str
    search_path: str
    seconds: float
    clients: float
    sessions: int | None
    counted: NewCounts
    texts: Mapping[int, str]
    types: Mapping[int, tuple[str, ...] | str]
    columns: Sequence[Column]
    sightings: Sequence[Sighting]
    log: LogKnowledge | None = None
    ended: Sequence[SightedEnd] = ()
    waits: Sequence[SightedWait] = ()
    calls_by_id: Mapping[int, Sequence[int]] = field(default_factory=dict)
    writing: Collection[str] = ()
    named: NamedObjects = NOTHING_NAMED
    assumed: Mapping[int, str] = field(default_factory=dict)


@dataclass
class _Sorted:
    """Replayed and omitted statements, and notes on them."""

    replayed: dict[int, Replayable] = field(default_factory=dict)
    parameters: dict[int, Parameters] = field(default_factory=dict)
    omitted: list[Omitted] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def assemble(observed: Observation) -> CapturedWorkload:
    """Return the workload derived from an observation."""
    observed, text_notes = _with_lists(_on_its_clock(observed))
    log, found = observed.log, _sort(observed)
    seen = observed.counted.seen
    names = dict(_names(found, observed))
    kinds = {one: look.kind for one, look in found.replayed.items()}
    grouping = _grouping(kinds, found.omitted, observed)
    placed = {one for kind_of_transaction in grouping.groups for one, _ in kind_of_transaction.calls}
    for one, kind in kinds.items():
        if kind in QUERIES_OR_WITHIN and one not in placed:
            found.omitted.append(Omitted(_shown(observed.texts[one], observed), _NOT_SEEN, seen[one]))
    statements = [
        CapturedStatement(
            names[one], executable(observed.texts[one]), seen[one], is_prepared=kind is TransactionPart.QUERY
        )
        for one, kind in kinds.items()
        if one in placed
    ]
    queries = [one for one, kind in kinds.items() if kind is TransactionPart.QUERY]
    protocol = protocol_of(observed.counted, queries) if log is None else log.protocol
    uses = {one: _row_use(one, observed) for one in found.parameters}
    placed_names = {one: name for one, name in names.items() if one in placed}
    calls = Statements(placed_names, found.parameters, uses, observed.columns)
    if log is not None:
        calls = replace(calls, kept=log.kept, full=log.full, earlier=log.earlier, inferred=log.inferred)
    transactions = [calls.transaction(one, has_control=log is not None) for one in grouping.groups]
    if log is None:
        called = {call.statement for one in transactions for call in one.calls}
        controls = control(observed.texts, seen, kinds, calls.rollback)
        statements += (one for one in controls if one.name in called)
    return CapturedWorkload(
        name=observed.name,
        server_version=observed.server_version,
        cluster=observed.cluster,
        database=observed.database,
        search_path=observed.search_path,
        seconds=observed.seconds,
        clients=max(1, round(observed.clients)),
        sessions=observed.sessions,
        ended=observed.counted.ended if log is None else None,
        assumed_share=round(grouping.assumed_share, 3),
        statements=tuple(statements),
        transactions=tuple(sorted(transactions, key=lambda one: -one.weight)),
        omitted=tuple(sorted(found.omitted, key=lambda one: -one.seen.time_ms)),
        notes=(
            *_notes(observed, grouping, names),
            *((UNKNOWN_PROTOCOL,) if protocol is None and log is None else ()),
            *notes_on_inferred(transactions),
            *_notes_on_statements(found, names, observed),
            *(f"{names[one]}: {note}" for one, note in text_notes if one in names),
        ),
        is_read_only=all(look.is_read_only for look in found.replayed.values()),
        protocol=protocol or "prepared",
        counted=QUANTITIES if log is None else _COUNTED_BY_LOGS,
    )


def _on_its_clock(observed: Observation) -> Observation:
    """Return an observation in which a log's calls have the application's time."""
    if observed.log is None:
        return observed
    writing = [one for one in observed.log.numbers if _WRITES.search(observed.texts.get(one, ""))]
    numbers, notes = on_its_clock(observed.log.numbers, writing)
    return replace(observed, log=replace(observed.log, numbers=numbers, notes=(*observed.log.notes, *notes)))


def _with_lists(observed: Observation) -> tuple[Observation, list[tuple[int, str]]]:
    """Return an observation with complete lists where their length can be inferred, and notes on texts."""
    texts, types, notes = dict(observed.texts), dict(observed.types), list(observed.assumed.items())
    for one, found in observed.types.items():
        if one in observed.counted.seen and not isinstance(found, str):
            whole = lengthened(texts[one], found, observed.counted.seen[one], observed.columns)
            if whole is not None:
                texts[one], types[one] = whole.sql, whole.types
                note = f"its list is assumed to have {whole.length} values, the number of rows found"
                notes.append((one, note))
    return replace(observed, texts=texts, types=types), notes


def _grouping(
    kinds: Mapping[int, TransactionPart], omitted: Sequence[Omitted], observed: Observation
) -> Grouping:
    """Return the transactions, known from a log or inferred from counts and sightings."""
    if observed.log is not None:
        return known(observed.log.transactions, kinds)
    calls = {one: observed.counted.seen[one].calls for one in kinds}
    ended, others = observed.counted.ended or Ended(0, 0), sum(one.seen.calls for one in omitted)
    transactions = max(0, ended.committed + ended.rolled_back - others)
    counted = CountedTransactions(transactions, others, observed.seconds)
    grouping = group(calls, kinds, observed.sightings, counted, observed.waits)
    blocks = sum(one.count for one in grouping.groups if one.is_block)
    return with_ends(grouping, kinds, _block_ends(kinds, observed, blocks))


def _block_ends(kinds: Mapping[int, TransactionPart], observed: Observation, blocks: float) -> BlockEnds:
    """Return how blocks ended. The server counts only the first execution of a prepared COMMIT or ROLLBACK:
    then the database's counts are taken.
    """
    seen = observed.counted.seen
    committed, rolled_back = (
        sum(seen[one].calls for one, part in kinds.items() if part is end)
        for end in (TransactionPart.COMMIT, TransactionPart.ROLLBACK)
    )
    if committed + rolled_back >= blocks / 2:
        return BlockEnds(observed.ended, Ended(committed, rolled_back).rolled_back_share, is_exact=True)
    of_database = 0 if observed.counted.ended is None else observed.counted.ended.rolled_back
    return BlockEnds(observed.ended, min(1.0, of_database / blocks), is_exact=False)


def _sort(observed: Observation) -> _Sorted:
    found = _Sorted()
    for one, seen in observed.counted.seen.items():
        sql = observed.texts.get(one)
        if sql is None:
            found.omitted.append(Omitted(f"(query id {one})", _WITHOUT_TEXT, seen))
        elif not is_of_others(sql):
            why = _take(found, one, sql, observed)
            if why is not None:
                found.omitted.append(Omitted(_shown(sql, observed), why, seen))
    _measure_ranges(found, has_rows=observed.log is None)
    return found


def _measure_ranges(found: _Sorted, *, has_rows: bool) -> None:
    """Set unknown widths of ranges to the median of other statements' ranges of the same column."""
    widths: defaultdict[str, list[float]] = defaultdict(list)
    for one in found.parameters.values():
        for column, width in one.widths.items():
            widths[column].append(width)
    for statement, one in found.parameters.items():
        drawn = list(one.drawn)
        for number, (column, is_lower) in one.unmeasured.items():
            end, width = drawn[number - 1], median_low(widths.get(column, [0]))
            if column in widths and isinstance(end, SameValue):
                drawn[number - 1] = replace(end, plus=int(-width if is_lower else width))
            elif column in widths and isinstance(end, RangeEnd):
                drawn[number - 1] = replace(end, rows=width) if has_rows else replace(end, widths=(width,))
        found.parameters[statement] = replace(one, drawn=tuple(drawn))


def _take(found: _Sorted, one: int, sql: str, observed: Observation) -> str | None:
    """Add a statement to those replayed; return None, or the reason why it is not replayed."""
    look = look_at(sql, observed.writing)
    if isinstance(look, str):
        return look
    if look.kind is TransactionPart.QUERY:
        types = observed.types.get(one, ())
        if isinstance(types, str):
            form = "its text in the statistics" if observed.log is None else "it without its constants"
            return f"the server cannot prepare {form}: {types}"
        log = observed.log
        numbers = None if log is None else log.numbers.get(one, ())
        parameters = parameters_of(
            sql, types, observed.columns, observed.counted.seen[one], numbers, observed.named
        )
        parameters = _without_kept(parameters, {} if log is None else log.kept.get(one, {}))
        if parameters.unknown:
            wanted = ", ".join(f"${number} ({types[number - 1]})" for number in parameters.unknown)
            why = f"no information about the values of {wanted}"
            return parameters.arguments.get(parameters.unknown[0], why)
        found.parameters[one] = parameters
    elif parameter_count(executable(sql)):
        return _WITHOUT_CONSTANTS
    found.replayed[one] = look
    return None


def _without_kept(one: Parameters, kept: Collection[int]) -> Parameters:
    """Return parameters without those with kept values among the guessed and unknown ones."""
    return replace(
        one,
        guessed=tuple(number for number in one.guessed if number not in kept),
        unknown=tuple(number for number in one.unknown if number not in kept or number in one.new),
        arguments={number: note for number, note in one.arguments.items() if number not in kept},
    )


def _shown(sql: str, observed: Observation) -> str:
    return shown(sql, is_counted=observed.log is None)


def _names(found: _Sorted, observed: Observation) -> Iterator[tuple[int, str]]:
    """Yield a unique name for each statement: its verb, its first table, and a number if necessary."""
    used: Counter[str] = Counter()
    by_calls = sorted(found.replayed, key=lambda one: -observed.counted.seen[one].calls)
    for one in by_calls:
        base = base_name(observed.texts[one])
        name = base
        while name in used:
            used[base] += 1
            name = f"{base}-{used[base]}"
        used[name] += 1
        yield one, name


def _row_use(statement: int, observed: Observation) -> RowUse:
    """Return how a statement uses rows; an empty use if it often finds no row, which logs do not show."""
    seen = observed.counted.seen[statement]
    if observed.log is None and seen.rows < _MOSTLY * seen.calls:
        return RowUse()
    return row_use(observed.texts[statement], observed.columns)


def _notes(observed: Observation, grouping: Grouping, names: Mapping[int, str]) -> Iterator[str]:
    """Yield notes on gaps in the information about the whole workload."""
    if observed.counted.nested_calls:
        yield (
            f"{observed.counted.nested_calls} calls within functions are replayed only as part of these "
            "functions"
        )
    if observed.counted.is_evicting:
        yield (
            "pg_stat_statements was full and discarded statements during the capture: raise "
            "pg_stat_statements.max to keep all"
        )
    if observed.log is not None:
        yield from observed.log.notes
    elif not observed.sightings:
        why = "no transaction was observed in progress"
        if observed.server_version.startswith("13."):
            why = "PostgreSQL 13 does not show which statement a session runs, a log (--log) does"
        yield f"{why}: each statement is treated as a transaction"
    elif grouping.untold:
        yield f"the statements of {grouping.untold} blocks (BEGIN … COMMIT) are unknown"
    yield from notes_on_ends(grouping, is_reset=observed.log is None and observed.counted.ended is None)
    sets = any("set_config" in observed.texts[one].lower() for one in names)
    if observed.named.settings and not sets:
        yield (
            f"policies of {', '.join(observed.named.secured)} read {', '.join(observed.named.settings)}, "
            "which no replayed statement sets: statements on these tables may fail, or find no rows"
        )
    if observed.named.locked:
        yield f"policies of {', '.join(observed.named.locked)} were not read: a table in them was locked"
    yield from notes_on_kinds(grouping, names)


def _notes_on_statements(found: _Sorted, names: Mapping[int, str], observed: Observation) -> Iterator[str]:
    for one, name in names.items():
        note = note_on(name, observed.texts[one])
        if note is not None:
            yield note
        calls = sorted(observed.calls_by_id.get(one, ()), reverse=True)
        if len(calls) > 1 and is_in_several_schemas(observed.texts[one], observed.columns):
            shares = listed([numbers.share(its / sum(calls)) for its in calls[:_MOST_SHARES]])
            more = " …" if len(calls) > _MOST_SHARES else ""
            yield (
                f"{name}: the server counted {len(calls)} statements with this text, with {shares}{more} of "
                "the calls, perhaps on tables of other schemas; all of them are replayed with search_path = "
                f"{observed.search_path}"
            )
        if one in found.parameters and found.parameters[one].unmeasured:
            yield f"{name}: the width of its range is unknown; {_used_width(found.parameters[one])} is used"
        if one in found.parameters:
            its = found.parameters[one]
            yield from (f"{name}: {note}" for note in (*its.notes, *its.arguments.values()))
        if one in found.parameters and found.parameters[one].guessed:
            guessed = ", ".join(f"${number}" for number in found.parameters[one].guessed)
            yield f"{name}: values of {guessed} are drawn by type only"


def _used_width(one: Parameters) -> str:
    """Return the substitute for unknown widths of ranges, in words."""
    ends = [one.drawn[number - 1] for number in one.unmeasured]
    is_free = any(isinstance(end, RangeEnd) and not end.widths and end.rows is None for end in ends)
    if is_free:
        return "any end after its beginning"
    is_one = any(isinstance(end, SameValue) and not end.plus for end in ends)
    return "a single value" if is_one else "that of other ranges of the column"
