"""A captured workload as options for pgdyno-driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

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

_Favours: TypeAlias = Mapping[int, tuple[float, ...]]
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


class _Samples:
    """Samples of texts, each sent to the driver once: kinds of transaction share statements."""

    def __init__(self) -> None:
        self.sent: list[Mapping[str, Any]] = []
        self._places: dict[Hashable, int] = {}

    def shared(self, drawn: Mapping[str, Any], source: Hashable) -> Mapping[str, Any]:
        """Return how to draw from a sample, identified by its source."""
        if drawn["draw"] == "mixture":
            parts = [[weight, self.shared(one, source)] for weight, one in drawn["parts"]]
            return {**drawn, "parts": parts}
        if drawn["draw"] != "one-of":
            return drawn
        if source not in self._places:
            self._places[source] = len(self.sent)
            self.sent.append({"values": drawn["values"], "weights": drawn.get("weights", [])})
        return {"draw": "one-of", "sample": self._places[source]}


def captured_options(workload: CapturedWorkload, draws: ColumnDraws) -> dict[str, Any]:
    """Return the driver's options. Raises: UsageError for an unknown column or statement."""
    places = {one.name: place for place, one in enumerate(workload.statements)}
    favours = {one.name: one.favours for one in workload.statements}
    keys, samples = _Keys(workload), _Samples()
    transactions = []
    for one in workload.transactions:
        drawing = _Drawing(draws, keys, samples)
        transactions.append({"weight": one.weight, "calls": list(_calls(one, places, favours, drawing))})
    return {
        "statements": [
            {"name": one.name, "sql": one.sql, "prepared": one.is_prepared} for one in workload.statements
        ],
        "samples": samples.sent,
        "transactions": transactions,
    }


class _Drawing:
    """One transaction: its calls so far, and the latest call of each statement."""

    def __init__(self, draws: ColumnDraws, keys: _Keys, samples: _Samples) -> None:
        self._draws = draws
        self._keys = keys
        self._samples = samples
        self._drawn: list[list[Mapping[str, Any]]] = []  # parameters by call
        self._places: dict[str, int] = {}

    def parameters(self, call: CapturedCall, favours: _Favours) -> list[Mapping[str, Any]]:
        """Return the parameters of the next call, of a statement that favours values at some positions."""
        own = len(self._drawn)
        self._drawn.append([])
        self._places.setdefault(call.statement, own)
        for number, one in enumerate(call.parameters, 1):
            self._drawn[-1].append(self._draw(one, favours.get(number, ())))
        self._places[call.statement] = own  # only now: its own name means its previous call
        return self._drawn[-1]

    def _draw(self, one: Parameter, positions: Sequence[float]) -> Mapping[str, Any]:
        drawn: Mapping[str, Any]
        match one:
            case ColumnValue() | ArrayOf() | NewKey():
                drawn = self._of_column(one, positions)
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
                drawn = self._samples.shared(independent_draw(one), one)
        return drawn

    def _of_column(
        self, one: ColumnValue | ArrayOf | NewKey, positions: Sequence[float]
    ) -> Mapping[str, Any]:
        if isinstance(one, NewKey):
            start = _known(one.column, self._draws.highest) + _KEY_DISTANCE
            return {"draw": "sequence", "start": start, **self._keys.part(one.column)}
        value = _known(one.column, self._draws.values)
        value = self._samples.shared(_within(value, positions), (one.column, *positions))
        if isinstance(one, ArrayOf):
            return {"draw": "array", "of": value, "length": one.length}
        return value

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
            return self._samples.shared(_known(one.column, self._draws.values), (one.column,))
        signed = [-width if one.is_lower else width for width in widths]
        return {"draw": "range-end", "call": call, "parameter": number, "widths": signed}

    def _place_of(self, statement: str) -> int:
        if statement not in self._places:
            raise UsageError(f'the transaction has no earlier call of "{statement}"')
        return self._places[statement]


def _calls(
    transaction: CapturedTransaction,
    statements: Mapping[str, int],
    favours: Mapping[str, _Favours],
    drawing: _Drawing,
) -> Iterator[dict[str, Any]]:
    for one in transaction.calls:
        if one.statement not in statements:
            raise UsageError(
                f'a transaction calls the statement "{one.statement}", which does not exist',
                hint=f"known: {', '.join(statements)}",
            )
        yield {
            "statement": statements[one.statement],
            "times": one.times,
            "parameters": drawing.parameters(one, favours[one.statement]),
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


def _within(drawn: Mapping[str, Any], positions: Sequence[float]) -> Mapping[str, Any]:
    """Return how to draw values from equally likely parts of a column's values; of all without positions."""
    if positions and drawn["draw"] == "integer":
        low, count = drawn["low"], drawn["high"] - drawn["low"] + 1
        return {"draw": "histogram", "bounds": [low + _place(one, count) for one in positions]}
    if not positions or drawn["draw"] != "one-of":
        return drawn
    weights = [0.0] * len(drawn["values"])
    places = [_place(one, len(weights)) for one in positions]
    for first, last in pairwise(places):
        for place in range(first, last + 1):
            weights[place] += 1 / (last + 1 - first)
    return {**drawn, "weights": weights}


def _place(position: float, count: int) -> int:
    return min(int(position * count), count - 1)


def _known(column: str, of: Mapping[str, T]) -> T:
    if column not in of:
        raise UsageError(f'unknown column "{column}"')
    return of[column]
