"""Parameters of a transaction that had the same values in a log."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from pgdyno.model.experiments.captured import CapturedCall, ColumnValue, NewKey, Parameter, SameValue
from pgdyno.workload.capture.parameters import STEP
from pgdyno.workload.capture.ties import is_once

Place = tuple[int, int]
"""A parameter: the number of its statement, and its own."""


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
