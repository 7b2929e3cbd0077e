"""Ties between parameters of a transaction: keys that it uses twice, and keys that it gets or makes.

A transaction that reads and then updates a row uses its key twice. One that inserts a row and others that
reference it gets the key from RETURNING, or made it itself. One that deletes a row and then inserts one
reuses its key. A column that references a key counts as that key.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedTransaction,
    ColumnValue,
    NewKey,
    Ordinal,
    Parameter,
    RangeEnd,
    ReturnedValue,
    SameValue,
)
from pgdyno.postgres.catalogued_tables import Column
from pgdyno.workload.capture.parameters import STEP, UNCHANGED
from pgdyno.workload.capture.row_use import RowUse

_ONCE = 0.05  # arbitrary tolerance around one call per transaction
_MOST_STEPS = 10  # from a referencing column to the key at the end of the chain; some chains are circular
Place = tuple[int, int]
"""A parameter: statement number and parameter number."""
_Spot = tuple[int, int]
"""A parameter in a transaction: the number of the call, from 0, and parameter number."""


@dataclass(frozen=True)
class _Source:
    """Source of a key's values. ``is_new``: a row inserted by the transaction.

    ``is_deleted``: a row of the key's own table deleted by it. ``returned_by`` is the number of the call that
    returned the values.
    """

    values: tuple[Parameter, ...]
    is_new: bool = False
    is_deleted: bool = False
    returned_by: int = -1


def tied(
    calls: Sequence[CapturedCall],
    uses: Mapping[str, RowUse],
    columns: Sequence[Column],
    seen: Collection[tuple[str, int]] = (),
    steady: Collection[tuple[str, int]] = (),
) -> Iterator[CapturedCall]:
    """Yield calls with their keys tied to those of earlier calls. ``uses`` are by statement name.

    A statement called several times uses several keys, except for parameters in ``steady``, by statement and
    number. It is tied only to newly inserted rows, and to those that were returned since its previous call.
    Parameters in ``seen`` had different values than all earlier parameters: they can only be tied to a
    returned value.
    """
    by_path = {column.path: column for column in columns}
    sources: dict[str, _Source] = {}
    often, first, latest = _often(calls), dict[str, int](), dict[str, int]()
    for at, call in enumerate(calls):
        since = None
        if call.statement in often:
            first.setdefault(call.statement, at)
            since = latest.get(call.statement, -1) if is_once(call) else at
        keys = [_key_of(one, by_path) for one in call.parameters]
        tied_to = [
            _tie(one, keys, place, sources, None if (call.statement, place + 1) in steady else since)
            for place, one in enumerate(call.parameters)
        ]
        drawn = (
            one if (call.statement, number) in seen and not isinstance(tie, ReturnedValue) else tie
            for number, (one, tie) in enumerate(zip(call.parameters, tied_to, strict=True), 1)
        )
        yield replace(call, parameters=tuple(drawn))
        if is_once(call):
            use = uses.get(call.statement, RowUse())
            _note(sources, (at, call), keys, use, by_path, first.get(call.statement))
        latest[call.statement] = at


def is_once(call: CapturedCall) -> bool:
    """Whether a statement is called once per transaction, within a tolerance of 5 %."""
    return abs(call.times - 1) <= _ONCE


def _often(calls: Iterable[CapturedCall]) -> set[str]:
    """Return the statements that a transaction calls several times, at once or after others."""
    times: defaultdict[str, float] = defaultdict(float)
    for call in calls:
        times[call.statement] += call.times
    return {name for name, its in times.items() if abs(its - 1) > _ONCE}


def _tie(
    one: Parameter, keys: Sequence[str | None], at: int, sources: Mapping[str, _Source], since: int | None
) -> Parameter:
    """Return the tied parameter: the n-th value of a key in this call is the n-th value of its source.

    A statement that is called several times needs a new row, or one returned after its call ``since``.
    """
    place, source = keys[:at].count(keys[at]), sources.get(keys[at] or "")
    if source is None or place >= len(source.values):
        return one
    if since is not None and not source.is_new and source.returned_by <= since:
        return one
    is_tied = isinstance(one, NewKey) if source.is_deleted else isinstance(one, ColumnValue)
    return source.values[place] if is_tied else one


def _note(
    sources: dict[str, _Source],
    numbered: tuple[int, CapturedCall],
    keys: Sequence[str | None],
    use: RowUse,
    by_path: Mapping[str, Column],
    first: int | None,
) -> None:
    """Record the keys that a call used, made, or returned. New ones replace earlier ones.

    A statement that is called several times, ``first`` being its first call, uses another key each time. What
    it returns replaces the keys that were returned since its first call.
    """
    at, call = numbered
    is_repeated = first is not None
    own = {key for key in keys if key is not None}
    for named in own:
        numbers = [number for number, key in enumerate(keys, 1) if key == named]
        is_new = any(isinstance(call.parameters[number - 1], NewKey) for number in numbers)
        is_deleted = use.is_deleted and ColumnValue(named) in call.parameters
        if is_new or ((is_deleted or named not in sources) and not is_repeated):
            used = tuple(SameValue(number, call.statement) for number in numbers)
            sources[named] = _Source(used, is_new, is_deleted)
    for number, column in enumerate(use.returned, 1):
        root = None if column is None else _root(column, by_path)
        if column is None or root is None or (is_repeated and root in own and not use.is_new):
            continue
        is_next = root not in sources or (first is not None and sources[root].returned_by >= first)
        if is_next or (use.is_new and column.path == root):
            sources[root] = _Source((ReturnedValue(number, call.statement),), use.is_new, returned_by=at)


def _key_of(one: Parameter, by_path: Mapping[str, Column]) -> str | None:
    """Return the path of a parameter's key; None if it has none."""
    column = by_path.get(one.column) if isinstance(one, ColumnValue | NewKey) else None
    return None if column is None else _root(column, by_path)


def _root(column: Column, by_path: Mapping[str, Column]) -> str | None:
    """Return the path of the key at the end of a column's references; None if that column is not a key."""
    for _ in range(_MOST_STEPS):
        further = None if column.references is None else by_path.get(column.references)
        if further is None:
            break
        column = further
    return column.path if column.is_key else None


def tied_as_seen(
    calls: Sequence[tuple[int, CapturedCall]],
    keys: frozenset[str],
    earlier: Mapping[Place, Sequence[Place]],
    new: Collection[Place] = (),
    again: Mapping[Place, Sequence[Place]] | None = None,
    deleting: Collection[int] = (),
) -> list[CapturedCall]:
    """Return calls in which parameters that had the same value are tied, and only the first one is drawn.

    Each of ``calls`` comes with its statement number. ``earlier`` maps a parameter to those that had the same
    values in the only call before it of their statement, ``again`` in the latest of several, or in the
    previous call of its own. The value is drawn by the most specific of the tied parameters: first one of
    ``new``, which no row has yet, then one of ``keys``, and so on; but the end of a range is drawn in its
    place. Parameters of a statement that is called several times in a row can repeat others. A value that one
    of the statements in ``deleting`` has first is that of a row, also if it is inserted again.
    """
    leaders, repeated = _leaders(calls, earlier, again or {})
    own = {spot: calls[spot[0]][1].parameters[spot[1] - 1] for spot in leaders}

    def rank(spot: _Spot) -> int:
        is_new = (calls[spot[0]][0], spot[1]) in new and calls[leaders[spot][0]][0] not in deleting
        return 0 if is_new else _rank(own[spot], keys, is_deleted=calls[leaders[spot][0]][0] in deleting)

    best = {spot: spot for spot in leaders}
    for spot, leader in leaders.items():
        if is_once(calls[spot[0]][1]) and not any(isinstance(own[one], RangeEnd) for one in (spot, leader)):
            best[leader] = min(best[leader], spot, key=rank)

    def parameter(spot: _Spot, one: Parameter) -> Parameter:
        is_new = spot in leaders and rank(spot) == 0
        if spot not in repeated or (is_new and isinstance(own[leaders[spot]], RangeEnd)):
            return own[best[spot]] if spot in best else one
        at, number = repeated[spot]
        return SameValue(number, None if at == spot[0] else calls[at][1].statement)

    return [
        replace(
            call,
            parameters=tuple(parameter((at, number), one) for number, one in enumerate(call.parameters, 1)),
        )
        for at, (_, call) in enumerate(calls)
    ]


def _leaders(
    calls: Sequence[tuple[int, CapturedCall]],
    earlier: Mapping[Place, Sequence[Place]],
    again: Mapping[Place, Sequence[Place]],
) -> tuple[dict[_Spot, _Spot], dict[_Spot, _Spot]]:
    """Return for each parameter the first one that had the same value, and for others the one they repeat.

    Only the latest call of a statement can be repeated, and only if it is one call.
    """
    leaders: dict[_Spot, _Spot] = {}
    repeated: dict[_Spot, _Spot] = {}
    latest: dict[int, int] = {}
    several: set[int] = set()  # statements that were called before
    for at, (statement, call) in enumerate(calls):
        previous = latest.get(statement, -1)
        if statement in latest:
            several.add(statement)
        latest[statement] = at
        for number, one in enumerate(call.parameters, 1):
            if isinstance(one, SameValue):
                continue
            place, often = (statement, number), several - {statement}
            alike = [other for other in earlier.get(place, ()) if other[0] not in often]
            alike += (other for other in again.get(place, ()) if other[0] in several)
            others = ((previous if other == place else latest.get(other[0], -1), other[1]) for other in alike)
            same = next((spot for spot in others if spot in leaders and is_once(calls[spot[0]][1])), None)
            leader = (at, number) if same is None else leaders[same]
            leaders[at, number] = leader
            if same is not None:
                is_latest = latest[calls[leader[0]][0]] == leader[0]
                repeated[at, number] = leader if is_latest else same
    return leaders, repeated


def _rank(one: Parameter, keys: frozenset[str], *, is_deleted: bool) -> int:
    """Return a rank by specificity; 0 is the most specific. ``is_deleted``: a row had the value before."""
    if isinstance(one, NewKey):
        return 5 if is_deleted else 0
    if isinstance(one, ColumnValue):
        return 1 if one.column in keys else 3  # columns of an empty table have no values
    return 2 if one in {STEP, UNCHANGED} else 4


@dataclass(frozen=True)
class Inferred:
    """Parameters with values that follow from others, by statement and number; a log shows no results.

    ``shifted`` differ from an earlier parameter by a number, ``steps`` from the last value of their row;
    ``ordinals`` number the calls of their statement. ``again`` are the same as earlier ones in the latest of
    several calls.
    """

    shifted: Mapping[Place, tuple[Place, int]] = field(default_factory=dict)
    steps: Mapping[Place, int] = field(default_factory=dict)
    ordinals: Collection[Place] = ()
    again: Mapping[Place, Sequence[Place]] = field(default_factory=dict)


def inferred(
    calls: Sequence[tuple[int, CapturedCall]], uses: Mapping[str, RowUse], known: Inferred
) -> Iterator[CapturedCall]:
    """Yield calls with parameters that follow from a result, other parameters, or the number of the call.

    Each of ``calls`` comes with its statement number. A column that a query returned and that a later
    statement sets to a value one step further is a counter. ``uses`` are by statement name.
    """
    often = _often(call for _, call in calls)
    once: dict[int, str] = {}  # names of earlier statements, called once at their latest place
    returned: dict[str, ReturnedValue] = {}
    results: set[Place] = set()
    for statement, call in calls:
        is_single = is_once(call)
        parameters = []
        for number, one in enumerate(call.parameters, 1):
            place = statement, number
            source = returned.get(one.column) if isinstance(one, ColumnValue) else None
            other, plus = known.shifted.get(place, ((0, 0), 0))
            # A new key follows from a result alone: keys that are made in step differ by as much here only.
            is_free = (
                other in results
                if isinstance(one, NewKey)
                else not isinstance(one, SameValue | ReturnedValue)
            )
            its = one
            if source is not None and place in known.steps and is_single:
                its = replace(source, plus=known.steps[place])
            elif other[0] in once and is_free:
                its = SameValue(other[1], once[other[0]], plus)
            elif place in known.ordinals and call.statement in often:
                its = Ordinal()
            if isinstance(its, ReturnedValue) or (its is not one and other in results):
                results.add(place)
            parameters.append(its)
        yield replace(call, parameters=tuple(parameters))
        if is_single:
            once[statement] = call.statement
            returned = {**_results(call.statement, uses), **returned}


def _results(statement: str, uses: Mapping[str, RowUse]) -> dict[str, ReturnedValue]:
    """Return the columns, by path, of rows that a statement returns but does not insert."""
    use = uses.get(statement, RowUse())
    columns = [] if use.is_new else list(enumerate(use.returned, 1))
    return {
        column.path: ReturnedValue(number, statement)
        for number, column in reversed(columns)
        if column is not None
    }


def notes_on_inferred(transactions: Iterable[CapturedTransaction]) -> Iterator[str]:
    """Yield a note on values that follow from the results of queries, which a log does not have."""
    names = {
        call.statement: None
        for one in transactions
        for call in one.calls
        if any(map(_is_inferred, call.parameters))
    }
    if names:
        yield (
            f"{', '.join(names)}: values are inferred to be those of earlier parameters or results of the "
            "transaction plus a constant, or to number the calls; a log has no results"
        )


def _is_inferred(one: Parameter) -> bool:
    if isinstance(one, SameValue):
        return bool(one.plus) and one.statement is not None
    return isinstance(one, Ordinal) or (isinstance(one, ReturnedValue) and bool(one.plus))
