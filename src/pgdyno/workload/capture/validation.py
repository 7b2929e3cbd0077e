"""Errors in a manually edited workload that are detectable without a server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedWorkload,
    Invariant,
    Parameter,
    RangeEnd,
    ReturnedValue,
    SameValue,
)
from pgdyno.workload.capture.statements import is_query, writing_command
from pgdyno.workload.capture.syntax import parameter_count


def mistakes_of(workload: CapturedWorkload) -> Iterator[str]:
    """Yield errors with their positions; transactions and parameters are counted from 1."""
    counts = {one.name: parameter_count(one.sql) if one.is_prepared else 0 for one in workload.statements}
    for number, transaction in enumerate(workload.transactions, 1):
        earlier: dict[str, int] = {}  # parameters of calls
        for call in transaction.calls:
            for mistake in _of_call(call, counts, earlier):
                yield f"transaction {number}, {call.statement}: {mistake}"
            earlier[call.statement] = len(call.parameters)
    for one in workload.invariants:
        if mistake := _of_invariant(one):
            yield f'invariant "{one.name}": {mistake}'


def _of_invariant(one: Invariant) -> str:
    if not is_query(one.sql):
        return "not a query"
    if command := writing_command(one.sql):
        return f"{command} is not allowed, an invariant must only read"
    return "parameters are not allowed in an invariant" if parameter_count(one.sql) else ""


def _of_call(call: CapturedCall, counts: Mapping[str, int], earlier: Mapping[str, int]) -> Iterator[str]:
    expected, given = counts.get(call.statement), len(call.parameters)
    if expected is None:
        yield "unknown statement"
    elif expected != given:
        yield f"requires {expected} parameters, not {given}"
    for number, one in enumerate(call.parameters, 1):
        mistake = _of_parameter(one, number, earlier)
        if mistake:
            yield f"${number} {mistake}"


def _of_parameter(one: Parameter, number: int, earlier: Mapping[str, int]) -> str:
    match one:
        case SameValue(parameter, None) if parameter >= number:
            return f"repeats ${parameter}, which is not before it"
        case RangeEnd(parameter) if parameter >= number:
            return f"ends the range of ${parameter}, which is not before it"
        case SameValue(parameter, str(statement)) if not parameter <= earlier.get(statement, 0):
            return f"repeats ${parameter} of {statement}, which no earlier call has"
        case ReturnedValue(_, statement) if statement not in earlier:
            return f"is returned by {statement}, which is not called before"
    return ""
