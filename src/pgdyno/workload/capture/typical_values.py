"""Typical values of a workload's parameters, from the planner's statistics of their columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pgdyno.base.facts import Unknown
from pgdyno.model.experiments.captured import (
    ArrayOf,
    Between,
    CapturedCall,
    CapturedTransaction,
    CapturedWorkload,
    ColumnValue,
    Constant,
    Letters,
    NewKey,
    OneOf,
    Ordinal,
    Parameter,
    RangeEnd,
    ReturnedValue,
    SameValue,
)
from pgdyno.postgres.catalogued_tables import ColumnStatistics
from pgdyno.workload.capture.literals import array_text

Value: TypeAlias = str | Unknown | None
"""The text of a value; None is NULL."""
_UUID = "80000000-0000-4000-8000-000000000000"
_LETTER = "m"
_MOST_LETTERS = 1000  # arbitrary: longer texts do not change the plan
_LARGEST = 2**63 - 1  # sums are limited to it, as in the driver


def typical_values(
    workload: CapturedWorkload, statistics: Mapping[str, ColumnStatistics | Unknown]
) -> dict[str, tuple[Value, ...]]:
    """Return values of each statement's parameters, as in the kind of transaction that calls it most often.

    ``statistics`` has an entry for each column that the workload names, by path. Statements that no
    transaction calls are left out.
    """
    found: dict[str, tuple[Value, ...]] = {}
    most: dict[str, float] = {}
    for kind in workload.transactions:
        values = _Transaction(statistics).values_of(kind)
        for call in kind.calls:
            calls = kind.weight * call.times
            if calls > most.get(call.statement, 0):
                found[call.statement], most[call.statement] = values[call.statement], calls
    return found


@dataclass
class _Transaction:
    """The values of a transaction's calls in order; for each statement, those of its latest call."""

    statistics: Mapping[str, ColumnStatistics | Unknown]
    _values: dict[str, tuple[Value, ...]] = field(default_factory=dict)

    def values_of(self, kind: CapturedTransaction) -> Mapping[str, tuple[Value, ...]]:
        for call in kind.calls:
            self._values[call.statement] = tuple(self._of_call(call))
        return self._values

    def _of_call(self, call: CapturedCall) -> Iterator[Value]:
        """Yield values; several of one column, or of an array, are spread over the column's histogram."""
        places, taken, own = Counter[str](), Counter[str](), list[Value]()
        for one in call.parameters:
            column, count = _places(one)
            places[column] += count
        for one in call.parameters:
            column, count = _places(one)
            own.append(self._value(one, (taken[column], places[column]), own))
            taken[column] += count
        yield from own

    def _value(self, one: Parameter, place: tuple[int, int], own: Sequence[Value]) -> Value:
        value: Value
        match one:
            case ColumnValue(column) | RangeEnd(_, column):
                value = self._of_column(column, place)
            case ArrayOf(column, length):
                value = self._array(column, (place[0], length, place[1]))
            case NewKey(column):
                value = self._beyond(column)
            case SameValue(number, statement, plus):
                others = own if statement is None else self._values.get(statement, ())
                value = others[number - 1] if number <= len(others) else Unknown("no earlier call has it")
                value = _sum(value, plus)
            case Ordinal():
                value = "1"
            case ReturnedValue(number, statement):
                value = Unknown(f"column {number} of the result of {statement} is unknown")
            case _:
                value = _of_file(one)
        return value

    def _of_column(self, column: str, place: tuple[int, int]) -> Value:
        its = self.statistics[column]
        if isinstance(its, Unknown):
            return its
        if its.bounds or its.common:
            return _at(its, *place)
        if its.null_fraction == 1:
            return None
        return Unknown(f"no value of {column} in the planner's statistics")

    def _array(self, column: str, places: tuple[int, int, int]) -> Value:
        first, length, whole = places
        elements: list[str] = []
        for number in range(first, first + length):
            value = self._of_column(column, (number, whole))
            if isinstance(value, Unknown):
                return value
            if value is not None:
                elements.append(value)
        return array_text(elements)

    def _beyond(self, column: str) -> Value:
        its = self.statistics[column]
        known = () if isinstance(its, Unknown) else (*its.bounds[-1:], *its.common)
        numbers = [number for text in known if (number := _number(text)) is not None]
        return _sum(str(max(numbers)), 1) if numbers else self._of_column(column, (0, 1))


def _places(one: Parameter) -> tuple[str, int]:
    """Return the column of a parameter's values, and their number; an empty name without a column."""
    match one:
        case ColumnValue(column) | RangeEnd(_, column):
            return column, 1
        case ArrayOf(column, length):
            return column, length
        case _:
            return "", 0


def _at(its: ColumnStatistics, number: int, whole: int) -> str:
    """Return one of ``whole`` values at equal distances in the histogram; a single one is the median.

    Without a histogram it is one of the most common values.
    """
    if not its.bounds:
        return its.common[number % len(its.common)]
    return its.bounds[(number + 1) * (len(its.bounds) - 1) // (whole + 1)]


def _of_file(one: Parameter) -> Value:
    """Return a typical value that depends only on the workload's file."""
    match one:
        case Between(low, high):
            return str((low + high) // 2)
        case Constant(value):
            return value
        case Letters(least, most):
            return _LETTER * min((least + most) // 2, _MOST_LETTERS)
        case OneOf():
            return _most_frequent(one)
        case _:  # all UUIDs are equally likely
            return _UUID


def _most_frequent(one: OneOf) -> str | None:
    weights = one.weights or (1.0,) * len(one.values)
    weight, value = max(zip(weights, one.values, strict=True), key=lambda each: each[0])
    return None if one.nulls > weight else value


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _sum(value: Value, plus: int) -> Value:
    """Return an integer's text with a number added; other texts unchanged, as in the driver."""
    number = _number(value) if isinstance(value, str) else None
    if number is None or not plus:
        return value
    return str(max(-_LARGEST - 1, min(number + plus, _LARGEST)))
