"""Casts of parameters that were constants: without them, the server may choose a different function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from pgdyno.model.experiments.captured import ColumnValue
from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.name_resolution import column_of
from pgdyno.workload.capture.parameters import parameters_of
from pgdyno.workload.capture.syntax import array_operand, number_of, tree, within_wrapping

_NUMBERS = frozenset({"smallint", "integer", "bigint", "numeric", "real", "double precision", "oid"})
_INTEGER = "integer"
_SUMS = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
_RESULTS = {
    (exp.If, "true"), (exp.Case, "default"), (exp.Select, "expressions"),
    (exp.ExplodingGenerateSeries, "start"), (exp.ExplodingGenerateSeries, "end"),
}  # fmt: skip
"""Places of a type that nothing else determines, by node and key."""
_LENGTHS = {(exp.Substring, "start"), (exp.Substring, "length")}
_TIMES = (exp.CurrentTimestamp, exp.Localtimestamp)


def assumed_types(sql: str, types: Sequence[str] | str, columns: Sequence[Column]) -> dict[int, str]:
    """Return assumed types of parameters: the statistics have none.

    Starts and lengths of substrings are integers. If the server cannot prepare a statement, so are operands,
    results of CASE and returned constants; elements of an array have the type of the compared column.
    """
    parsed, found = tree(sql), dict[int, str]()
    for node in () if parsed is None else parsed.find_all(exp.Placeholder):
        number, parent = number_of(node), node.parent
        if number is None or parent is None:
            continue
        place, compared = (type(parent), node.arg_key), array_operand(node)
        if place in _LENGTHS:
            found[number] = _INTEGER
        elif isinstance(types, str) and compared is not None:
            column = column_of(within_wrapping(compared), columns)
            found |= {} if column is None else {number: column.type}
        elif isinstance(types, str) and (place in _RESULTS or _is_operand(node, parent, columns)):
            found[number] = _INTEGER
    return found


def _is_operand(node: exp.Expression, parent: exp.Expr, columns: Sequence[Column]) -> bool:
    """Whether a parameter is an operand of an expression of numbers or dates, as far as is known."""
    if not isinstance(parent, _SUMS):
        return False
    other = within_wrapping(parent.this if node.arg_key == "expression" else parent.expression)
    column = column_of(other, columns)
    if column is not None:
        return column.type == "date" or column.type in _NUMBERS
    return not isinstance(other, _TIMES)


def casts_of(
    sql: str, types: Sequence[str] | str, numbers: Mapping[int, str], columns: Sequence[Column], seen: Seen
) -> dict[int, str]:
    """Return the types to which a statement's parameters are cast, by number.

    ``numbers`` has the types of the constants that were numbers. ``types`` are the inferred types, or the
    server's error message; after an error, all ``numbers`` are cast. Without casts,
    ``substring(code from $1 for $2)`` resolves to the function that takes patterns. Values of a column are
    not cast: a text column has values that are not numbers.
    """
    if isinstance(types, str):
        return dict(numbers)
    others = {one: its for one, its in numbers.items() if types[one - 1] not in _NUMBERS}
    if not others:
        return {}
    found = parameters_of(sql, types, columns, seen)
    return {
        one: its
        for one, its in others.items()
        if one not in found.new and not isinstance(found.drawn[one - 1], ColumnValue)
    }
