"""Parameters of a transaction that are the same value: keys that it names twice, and keys that it is given.

A transaction that reads a row and writes to it names its key twice. One that inserts a row and others that
refer to it has the key from RETURNING, or has made it itself. One that deletes a row and inserts one puts it
in its place. A column that refers to a key counts as that key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pgdyno.model.experiments.captured import (
    CapturedCall,
    ColumnValue,
    NewKey,
    Parameter,
    ReturnedValue,
    SameValue,
)
from pgdyno.postgres.catalogued_tables import Column
from pgdyno.workload.capture.parameters import STEP
from pgdyno.workload.capture.row_use import RowUse

_ONCE = 0.05  # arbitrary: give or take
_MOST_STEPS = 10  # from a column that refers to another to the key at the end; some go round in circles
Place = tuple[int, int]
"""A parameter: the number of its statement, and its own."""


@dataclass(frozen=True)
class _Source:
    """Where the values of a key come from. ``is_new``: from a row that the transaction inserts.

    ``is_deleted``: from one that it deletes.
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
    """Yield calls whose keys are tied to those of earlier ones. ``uses`` are by statements' names.

    What is called several times looks for several keys, and is tied to rows alone that were just inserted.
    The values of ``seen``, parameters by statement and number, differed from those of all earlier ones: only
    a returned value can have been the same.
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
    """Whether a call comes as often as its transactions, give or take."""
    return abs(call.times - 1) <= _ONCE


def _tie(
    one: Parameter, keys: Sequence[str | None], at: int, sources: Mapping[str, _Source], *, is_once: bool
) -> Parameter:
    """Return where a value comes from: the first one of a key in this call from the first in another."""
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
    """Note the keys that a call has named, made, or returned. New ones replace those from before."""
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
    """Return the path of the key that a parameter is a value of; None if it is of none."""
    column = by_path.get(one.column) if isinstance(one, ColumnValue | NewKey) else None
    return None if column is None else _root(column, by_path)


def _root(column: Column, by_path: Mapping[str, Column]) -> str | None:
    """Return the path of the key that a column refers to in the end, or is."""
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
    """Return calls, each after its statement's number, of which one draws a value and others have the same.

    ``earlier`` are those before a parameter that had its values. Of several, the one is drawn of which most
    is known: a new key, one of ``keys``, and so on.
    """
    drawn = {
        (statement, number): parameter
        for statement, call in calls
        if is_once(call)
        for number, parameter in enumerate(call.parameters, 1)
        if not isinstance(parameter, SameValue)
    }
    leaders = _leaders(drawn, earlier)
    best = dict(drawn)
    for place, leader in leaders.items():
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


def _leaders(drawn: Collection[Place], earlier: Mapping[Place, Sequence[Place]]) -> dict[Place, Place]:
    """Return by parameter the first that had the same value."""
    leaders: dict[Place, Place] = {}
    for place in drawn:
        same = next((other for other in earlier.get(place, ()) if other in leaders), None)
        leaders[place] = place if same is None else leaders[same]
    return leaders


def _rank(one: Parameter, keys: frozenset[str]) -> int:
    """Return how much is known of a parameter; the least number is the most."""
    if isinstance(one, NewKey):
        return 0
    if isinstance(one, ColumnValue):
        return 1 if one.column in keys else 3  # a table may be empty, and then its columns have no value
    return 2 if one == STEP else 4
