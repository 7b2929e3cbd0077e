"""Ties between parameters of a transaction: keys that it uses twice, and keys that it gets or makes.

A transaction that reads and then updates a row uses its key twice. One that inserts a row and others that
reference it gets the key from RETURNING, or made it itself. One that deletes a row and then inserts one
reuses its key. A column that references a key counts as that key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedTransaction,
    ColumnValue,
    NewKey,
    Ordinal,
    Parameter,
    ReturnedValue,
    SameValue,
)
from pgdyno.postgres.catalogued_tables import Column
from pgdyno.workload.capture.parameters import STEP
from pgdyno.workload.capture.row_use import RowUse

_ONCE = 0.05  # arbitrary tolerance around one call per transaction
_MOST_STEPS = 10  # from a referencing column to the key at the end of the chain; some chains are circular
Place = tuple[int, int]
"""A parameter: statement number and parameter number."""


@dataclass(frozen=True)
class _Source:
    """Source of a key's values. ``is_new``: a row inserted by the transaction.

    ``is_deleted``: a row deleted by it.
    """

    values: tuple[Parameter, ...]
    is_new: bool = False
    is_deleted: bool = False


def tied(
    calls: Sequence[CapturedCall],
    uses: Mapping[str, RowUse],
    columns: Sequence[Column],
    seen: Collection[tuple[str, int]] = (),
) -> Iterator[CapturedCall]:
    """Yield calls with their keys tied to those of earlier calls. ``uses`` are by statement name.

    A statement called several times uses several keys, and is tied only to newly inserted rows.
    Parameters in ``seen``, by statement and number, had different values than all earlier parameters: they
    can only be tied to a returned value.
    """
    by_path = {column.path: column for column in columns}
    sources: dict[str, _Source] = {}
    for call in calls:
        once = is_once(call)
        keys = [_key_of(one, by_path) for one in call.parameters]
        tied_to = [_tie(one, keys, place, sources, is_once=once) for place, one in enumerate(call.parameters)]
        drawn = (
            one if (call.statement, number) in seen and not isinstance(tie, ReturnedValue) else tie
            for number, (one, tie) in enumerate(zip(call.parameters, tied_to, strict=True), 1)
        )
        yield replace(call, parameters=tuple(drawn))
        if once:
            _note(sources, call, keys, uses.get(call.statement, RowUse()), by_path)


def is_once(call: CapturedCall) -> bool:
    """Whether a statement is called once per transaction, within a tolerance of 5 %."""
    return abs(call.times - 1) <= _ONCE


def _tie(
    one: Parameter, keys: Sequence[str | None], at: int, sources: Mapping[str, _Source], *, is_once: bool
) -> Parameter:
    """Return the tied parameter: the n-th value of a key in this call is the n-th value of its source."""
    place, source = keys[:at].count(keys[at]), sources.get(keys[at] or "")
    if source is None or place >= len(source.values) or not (is_once or source.is_new):
        return one
    is_tied = source.is_deleted if isinstance(one, NewKey) else isinstance(one, ColumnValue)
    return source.values[place] if is_tied else one


def _note(
    sources: dict[str, _Source],
    call: CapturedCall,
    keys: Sequence[str | None],
    use: RowUse,
    by_path: Mapping[str, Column],
) -> None:
    """Record the keys that a call used, made, or returned. New ones replace earlier ones."""
    for named in {key for key in keys if key is not None}:
        numbers = [number for number, key in enumerate(keys, 1) if key == named]
        is_new = any(isinstance(call.parameters[number - 1], NewKey) for number in numbers)
        if is_new or use.is_deleted or named not in sources:
            values = tuple(SameValue(number, call.statement) for number in numbers)
            sources[named] = _Source(values, is_new, use.is_deleted)
    for number, column in enumerate(use.returned, 1):
        root = None if column is None else _root(column, by_path)
        if column is None or root is None:
            continue
        if root not in sources or (use.is_new and column.path == root):
            sources[root] = _Source((ReturnedValue(number, call.statement),), use.is_new)


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
) -> list[CapturedCall]:
    """Return calls in which parameters that had the same value are tied, and only the first one is drawn.

    Each of ``calls`` comes with its statement number. ``earlier`` maps a parameter to earlier ones that had
    the same values. The value is drawn by the most specific of the tied parameters: a new key first, then one
    of ``keys``, and so on. Parameters of a statement that is called several times can repeat others.
    """
    drawn = {
        (statement, number): parameter
        for statement, call in calls
        for number, parameter in enumerate(call.parameters, 1)
        if not isinstance(parameter, SameValue)
    }
    once = {statement for statement, call in calls if is_once(call)}
    leaders = _leaders(drawn, earlier, once)
    best = dict(drawn)
    for place, leader in leaders.items():
        if place[0] in once:
            best[leader] = min(best[leader], drawn[place], key=lambda one: _rank(one, keys))
    names = {statement: call.statement for statement, call in calls}

    def parameter(place: Place, one: Parameter) -> Parameter:
        leader = leaders.get(place, place)
        if leader == place:
            return best.get(place, one)
        return SameValue(leader[1], None if leader[0] == place[0] else names[leader[0]])

    return [
        replace(
            call,
            parameters=tuple(
                parameter((statement, number), one) for number, one in enumerate(call.parameters, 1)
            ),
        )
        for statement, call in calls
    ]


def _leaders(
    drawn: Collection[Place], earlier: Mapping[Place, Sequence[Place]], once: Collection[int]
) -> dict[Place, Place]:
    """Return for each parameter the first one, of a statement called ``once``, that had the same value."""
    leaders: dict[Place, Place] = {}
    for place in drawn:
        others = (other for other in earlier.get(place, ()) if other in leaders and other[0] in once)
        same = next(others, None)
        leaders[place] = place if same is None else leaders[same]
    return leaders


def _rank(one: Parameter, keys: frozenset[str]) -> int:
    """Return a rank by specificity; 0 is the most specific."""
    if isinstance(one, NewKey):
        return 0
    if isinstance(one, ColumnValue):
        return 1 if one.column in keys else 3  # columns of an empty table have no values
    return 2 if one == STEP else 4


@dataclass(frozen=True)
class Inferred:
    """Parameters with values that follow from others, by statement and number; a log shows no results.

    ``shifted`` differ from an earlier parameter by a number, ``steps`` from the last value of their row;
    ``ordinals`` number the calls of their statement.
    """

    shifted: Mapping[Place, tuple[Place, int]] = field(default_factory=dict)
    steps: Mapping[Place, int] = field(default_factory=dict)
    ordinals: Collection[Place] = ()


def inferred(
    calls: Sequence[tuple[int, CapturedCall]], uses: Mapping[str, RowUse], known: Inferred
) -> Iterator[CapturedCall]:
    """Yield calls with parameters that follow from a result, other parameters, or the number of the call.

    Each of ``calls`` comes with its statement number. A column that a query returned and that a later
    statement sets to a value one step further is a counter. ``uses`` are by statement name.
    """
    once = {statement: call.statement for statement, call in calls if is_once(call)}
    returned: dict[str, ReturnedValue] = {}
    results: set[Place] = set()
    for statement, call in calls:
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
            if source is not None and place in known.steps and statement in once:
                its = replace(source, plus=known.steps[place])
            elif other[0] in once and is_free:
                its = SameValue(other[1], once[other[0]], plus)
            elif place in known.ordinals and statement not in once:
                its = Ordinal()
            if isinstance(its, ReturnedValue) or (its is not one and other in results):
                results.add(place)
            parameters.append(its)
        yield replace(call, parameters=tuple(parameters))
        use = uses.get(call.statement, RowUse())
        if statement in once and not use.is_new:
            for number, column in enumerate(use.returned, 1):
                if column is not None:
                    returned.setdefault(column.path, ReturnedValue(number, call.statement))


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
