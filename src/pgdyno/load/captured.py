"""A captured workload as options for pgdyno-driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.captured import (
    ArrayOf,
    Between,
    CapturedCall,
    CapturedTransaction,
    CapturedWorkload,
    ColumnValue,
    Constant,
    Independent,
    Letters,
    NewKey,
    OneOf,
    Ordinal,
    Parameter,
    RangeEnd,
    ReturnedValue,
    SameValue,
    Uuid,
)

T = TypeVar("T")

_KEY_DISTANCE = 1  # of the first new key from the highest key in the copy


@dataclass(frozen=True)
class ColumnDraws:
    """The distributions of a copy's columns, in the driver's format, and the highest key of each column.

    ``widths`` has equally likely widths of ranges; ranges without any have independent ends.
    """

    values: Mapping[str, Mapping[str, Any]]
    highest: Mapping[str, int]
    widths: Mapping[RangeEnd, tuple[float, ...]] = field(default_factory=dict)


class _Keys:
    """Divides the new keys of each column, so that parameters on the same column draw different numbers."""

    def __init__(self, workload: CapturedWorkload) -> None:
        self._all = Counter(
            parameter.column
            for transaction in workload.transactions
            for call in transaction.calls
            for parameter in call.parameters
            if isinstance(parameter, NewKey)
        )
        self._assigned: Counter[str] = Counter()

    def part(self, column: str) -> dict[str, int]:
        """Return the next part of a column's keys, and the number of parts."""
        part = self._assigned[column]
        self._assigned[column] += 1
        return {"part": part, "parts": self._all[column]}


def captured_options(workload: CapturedWorkload, draws: ColumnDraws) -> dict[str, Any]:
    """Return the driver's options. Raises: UsageError for an unknown column or statement."""
    places = {one.name: place for place, one in enumerate(workload.statements)}
    keys = _Keys(workload)
    return {
        "statements": [
            {"name": one.name, "sql": one.sql, "prepared": one.is_prepared} for one in workload.statements
        ],
        "transactions": [
            {"weight": one.weight, "calls": list(_calls(one, places, draws, keys))}
            for one in workload.transactions
        ],
    }


class _Drawing:
    """One transaction: its calls so far, and the latest call of each statement."""

    def __init__(self, draws: ColumnDraws, keys: _Keys) -> None:
        self._draws = draws
        self._keys = keys
        self._drawn: list[list[Mapping[str, Any]]] = []  # parameters by call
        self._places: dict[str, int] = {}

    def parameters(self, call: CapturedCall) -> list[Mapping[str, Any]]:
        """Return the parameters of the next call."""
        own = len(self._drawn)
        self._drawn.append([])
        self._places.setdefault(call.statement, own)
        for one in call.parameters:
            self._drawn[-1].append(self._draw(one))
        self._places[call.statement] = own  # only now: its own name means its previous call
        return self._drawn[-1]

    def _draw(self, one: Parameter) -> Mapping[str, Any]:
        drawn: Mapping[str, Any]
        match one:
            case ColumnValue() | ArrayOf() | NewKey():
                drawn = self._of_column(one)
            case SameValue():
                drawn = self._same(one)
            case RangeEnd():
                drawn = self._end(one)
            case ReturnedValue(column, statement, plus):
                place = {"call": self._place_of(statement), "column": column - 1}
                drawn = {"draw": "returned", **place, "plus": plus}
            case Ordinal():
                drawn = {"draw": "ordinal"}
            case _:
                drawn = independent_draw(one)
        return drawn

    def _of_column(self, one: ColumnValue | ArrayOf | NewKey) -> Mapping[str, Any]:
        if isinstance(one, NewKey):
            start = _known(one.column, self._draws.highest) + _KEY_DISTANCE
            return {"draw": "sequence", "start": start, **self._keys.part(one.column)}
        value = _known(one.column, self._draws.values)
        return value if isinstance(one, ColumnValue) else {"draw": "array", "of": value, "length": one.length}

    def _same(self, one: SameValue) -> Mapping[str, Any]:
        """Return a reference to another parameter's value, or to the result that this one comes from."""
        call = len(self._drawn) - 1 if one.statement is None else self._place_of(one.statement)
        others, number = self._drawn[call], one.parameter - 1
        if number < len(others) and others[number]["draw"] == "returned":
            return {**others[number], "plus": others[number]["plus"] + one.plus}
        return {"draw": "same-as", "call": call, "parameter": number, "plus": one.plus}

    def _end(self, one: RangeEnd) -> Mapping[str, Any]:
        """Return how far the end is from the beginning; a returned beginning is unknown until it arrives."""
        call, number = len(self._drawn) - 1, one.parameter - 1
        others, widths = self._drawn[call], self._draws.widths.get(one, ())
        if not widths or number >= len(others) or others[number]["draw"] == "returned":
            return _known(one.column, self._draws.values)
        signed = [-width if one.is_lower else width for width in widths]
        return {"draw": "range-end", "call": call, "parameter": number, "widths": signed}

    def _place_of(self, statement: str) -> int:
        if statement not in self._places:
            raise UsageError(f'the transaction has no earlier call of "{statement}"')
        return self._places[statement]


def _calls(
    transaction: CapturedTransaction, statements: Mapping[str, int], draws: ColumnDraws, keys: _Keys
) -> Iterator[dict[str, Any]]:
    drawing = _Drawing(draws, keys)
    for one in transaction.calls:
        if one.statement not in statements:
            raise UsageError(
                f'a transaction calls the statement "{one.statement}", which does not exist',
                hint=f"known: {', '.join(statements)}",
            )
        yield {
            "statement": statements[one.statement],
            "times": one.times,
            "parameters": drawing.parameters(one),
        }


def independent_draw(one: Independent) -> Mapping[str, Any]:
    """Return the driver's form of a parameter that depends on nothing else."""
    drawn: Mapping[str, Any]
    match one:
        case Between():
            drawn = _integer(one)
        case Constant(value):
            drawn = {"draw": "null"} if value is None else {"draw": "constant", "value": value}
        case Letters(least, most):
            drawn = {"draw": "text", "least": least, "most": most}
        case Uuid():
            drawn = {"draw": "uuid"}
        case OneOf():
            drawn = _one_of(one)
    return drawn


def _integer(one: Between) -> Mapping[str, Any]:
    drawn = {"draw": "integer", "low": one.low, "high": one.high}
    if one.parameter is not None:
        drawn |= {"draw": "pgbench-integer", "parameter": one.parameter}
    return drawn if one.distribution == "uniform" else {**drawn, "distribution": one.distribution}


def _one_of(one: OneOf) -> Mapping[str, Any]:
    drawn = {"draw": "one-of", "values": list(one.values), "weights": list(one.weights)}
    if not one.nulls:
        return drawn
    weight = sum(one.weights) if one.weights else float(len(one.values))
    return {"draw": "mixture", "parts": [[weight, drawn], [one.nulls, {"draw": "null"}]]}


def _known(column: str, of: Mapping[str, T]) -> T:
    if column not in of:
        raise UsageError(f'unknown column "{column}"')
    return of[column]
