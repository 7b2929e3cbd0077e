"""How to draw each parameter of a statement, according to its position in the syntax tree.

pg_stat_statements has no parameter values. A parameter that is compared with a column gets one of its values.
A parameter without such a clue is drawn by its type only, and a note lists it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median_low

from sqlglot import exp

from pgdyno.model.experiments.captured import (
    ArrayOf,
    Between,
    ColumnValue,
    Constant,
    Letters,
    NewKey,
    Parameter,
    SameValue,
    Uuid,
)
from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.name_resolution import column_of, columns_of
from pgdyno.workload.capture.syntax import number_of, parameter_count, tree, within_wrapping, without_wrapping

_LOWER = (exp.GT, exp.GTE)
_UPPER = (exp.LT, exp.LTE)
_COMPARISONS = (exp.EQ, exp.NEQ, *_LOWER, *_UPPER, exp.NullSafeEQ, exp.NullSafeNEQ)
_PATTERNS = (exp.Like, exp.ILike)
_SLEEP = "pg_sleep"  # its execution time shows its argument
_LOCKS = ("pg_advisory_", "pg_try_advisory_")
_LOCK = Between(1, 1_000_000_000)  # arbitrary: large enough that equal values are rare
STEP = Between(-100, 100)  # arbitrary: the number added to a column
_NEW_KEYS: Mapping[str, Parameter] = {
    "text": Letters(20, 20),
    "character varying": Letters(20, 20),
    "uuid": Uuid(),
}
"""Values that are almost certainly unique, by type."""
_BY_TYPE: Mapping[str, Parameter] = {
    "smallint": Between(1, 100),
    "integer": Between(1, 100),
    "bigint": Between(1, 100),
    "numeric": Between(1, 100),
    "real": Between(1, 100),
    "double precision": Between(1, 100),
    "text": Letters(5, 20),
    "character varying": Letters(5, 20),
    "boolean": Constant("true"),
    "uuid": Uuid(),
    "interval": Constant("1 day"),
    "date": Constant("today"),
    "timestamp without time zone": Constant("now"),
    "timestamp with time zone": Constant("now"),
}
"""Arbitrary values by type, for parameters without any other information."""


@dataclass(frozen=True)
class Parameters:
    """A statement's parameters in order; ``guessed`` are the numbers of those drawn by type only.

    ``unknown`` are the numbers of parameters that cannot be drawn, ``new`` of those that need a value not yet
    in any row. ``widths`` has the widths of ranges by column. ``unmeasured`` has the columns of ranges of
    unknown width, as in aggregates, by the number of the upper bound.
    """

    drawn: tuple[Parameter, ...]
    guessed: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()
    new: frozenset[int] = frozenset()
    widths: Mapping[str, int] = field(default_factory=dict)
    unmeasured: Mapping[int, str] = field(default_factory=dict)


def parameters_of(
    sql: str,
    types: Sequence[str],
    columns: Sequence[Column],
    seen: Seen,
    numbers: Sequence[Mapping[int, int]] | None = None,
) -> Parameters:
    """Return how to draw a statement's parameters. ``types`` are the types that the server infers.

    ``numbers`` are the integers among the parameters of some calls, by parameter number. None means that the
    rows returned by calls are known instead.
    """
    count = parameter_count(sql)
    places = _Places(sql, columns, seen, numbers)
    meanings = places.meanings() if count else {}
    drawn: list[Parameter] = []
    guessed: list[int] = []
    unknown: list[int] = []
    for number in range(1, count + 1):
        meaning = meanings.get(number)
        if meaning is None:
            meaning = _BY_TYPE.get(types[number - 1] if number <= len(types) else "")
            (unknown if meaning is None else guessed).append(number)
        drawn.append(meaning or Constant(None))
    return Parameters(
        tuple(drawn),
        tuple(guessed),
        tuple(unknown),
        frozenset(places.new),
        places.widths,
        places.unmeasured,
    )


class _Places:
    """The parameters of one statement in its syntax tree."""

    def __init__(
        self,
        sql: str,
        columns: Sequence[Column],
        seen: Seen,
        numbers: Sequence[Mapping[int, int]] | None,
    ) -> None:
        self._tree = tree(sql)
        self._columns = columns
        self._numbers = numbers
        self._rows = max(1, math.ceil(seen.rows / seen.calls - 0.01))
        self._seconds = seen.time_ms / seen.calls / 1000
        self.widths: dict[str, int] = {}
        self.unmeasured: dict[int, str] = {}
        self.new: set[int] = set()
        self._lower: dict[tuple[int, str], int] = {}  # by condition and column: the lower bound's parameter

    def meanings(self) -> dict[int, Parameter]:
        """Return how to draw parameters, by number, without the unknown ones."""
        if self._tree is None:
            return {}
        nodes: dict[int, exp.Expression] = {}
        for node in self._tree.find_all(exp.Placeholder):
            number = number_of(node)
            if number is not None:
                nodes.setdefault(number, node)
        found = {number: self._meaning(number, without_wrapping(nodes[number])) for number in sorted(nodes)}
        return {number: meaning for number, meaning in found.items() if meaning is not None}

    def _meaning(self, number: int, node: exp.Expression) -> Parameter | None:
        parent = node.parent
        meaning: Parameter | None = None
        if isinstance(parent, exp.Limit | exp.Fetch):
            meaning = self._median(number, self._rows if self._numbers is None else None)
        elif isinstance(parent, exp.Offset):
            meaning = self._median(number, 0)
        elif isinstance(parent, exp.Tuple):
            meaning = self._inserted(number, node, parent) or self._in_row(node, parent)
        elif isinstance(parent, exp.Any):
            meaning = self._array(parent)
        elif isinstance(parent, exp.In) and node.arg_key == "expressions":
            meaning = self._value_of(parent.this)
        elif isinstance(parent, exp.Anonymous):
            meaning = self._argument(parent.name.lower())
        elif isinstance(parent, exp.Between):
            meaning = self._bound(number, parent.this, is_lower=node.arg_key == "low", condition=parent)
        elif isinstance(parent, _COMPARISONS + _PATTERNS):
            meaning = self._compared(number, node, parent)
        elif isinstance(parent, exp.Add | exp.Sub) and self._column(_other_operand(node, parent)) is not None:
            meaning = STEP
        return meaning

    def _in_row(self, node: exp.Expression, row: exp.Tuple) -> Parameter | None:
        """Return a value in a row comparison, ``(a, b) > ($1, $2)``, or in a list of rows."""
        place, compared = row.expressions.index(node), row.parent
        if isinstance(compared, exp.In):
            other = compared.this
        elif isinstance(compared, _COMPARISONS):
            other = _other_operand(row, compared)
        else:
            return None
        is_row = isinstance(other, exp.Tuple) and place < len(other.expressions)
        return self._value_of(other.expressions[place]) if is_row else None

    def _array(self, any_of: exp.Any) -> Parameter | None:
        """Return the array in ``= ANY ($1)``; for a key, it has as many values as rows were returned."""
        compared = any_of.parent
        if not isinstance(compared, exp.Expression):
            return None
        column = self._column(_other_operand(any_of, compared))
        if column is None:
            return None
        return ArrayOf(column.path, self._rows if column.is_key else 1)

    def _median(self, number: int, otherwise: int | None) -> Parameter | None:
        """Return the median of the values in ``numbers``, or ``otherwise`` if there are none."""
        seen = [call[number] for call in self._numbers or () if number in call]
        found = median_low(seen) if seen else otherwise
        return None if found is None else Constant(str(found))

    def _argument(self, function: str) -> Parameter | None:
        """Return the argument of pg_sleep or of an advisory lock function."""
        if function == _SLEEP:
            return Constant(f"{self._seconds:.6f}")
        return _LOCK if function.startswith(_LOCKS) else None

    def _compared(self, number: int, node: exp.Expression, parent: exp.Expression) -> Parameter | None:
        other, is_right = _other_operand(node, parent), node.arg_key == "expression"
        if isinstance(parent, _LOWER if is_right else _UPPER):
            return self._bound(number, other, is_lower=True, condition=_conjunction(parent))
        if isinstance(parent, _UPPER if is_right else _LOWER):
            return self._bound(number, other, is_lower=False, condition=_conjunction(parent))
        return self._value_of(other)

    def _bound(
        self, number: int, of: exp.Expression, *, is_lower: bool, condition: exp.Expression
    ) -> Parameter | None:
        """Return a bound of a range; the upper bound depends on the lower one and the range's width."""
        column = self._column(of)
        if column is None:
            return None
        key = id(condition), column.path
        if is_lower:
            self._lower[key] = number
        elif key in self._lower and column.is_integer:
            return self._upper(number, self._lower[key], column)
        return ColumnValue(column.path)

    def _upper(self, number: int, lower: int, column: Column) -> Parameter:
        """Return the upper bound of a range; its width is the median seen, or the number of rows less one."""
        calls = self._numbers or ()
        seen = [call[number] - call[lower] for call in calls if number in call and lower in call]
        has_rows = self._numbers is None
        width = median_low(seen) if seen else self._rows - 1 if has_rows else 0
        if seen or (has_rows and not self._is_aggregate()):
            self.widths[column.path] = width
        else:
            self.unmeasured[number] = column.path
        return SameValue(lower, plus=width)

    def _is_aggregate(self) -> bool:
        """Whether a statement's number of returned rows differs from the number that it reads."""
        select = self._tree
        if not isinstance(select, exp.Select):
            return False
        has_one = not select.args.get("group") and any(one.find(exp.AggFunc) for one in select.expressions)
        return has_one or select.args.get("limit") is not None

    def _inserted(self, number: int, node: exp.Expression, row: exp.Tuple) -> Parameter | None:
        """Return the value for a column of a new row."""
        insert = row.find_ancestor(exp.Insert)
        if insert is None or not isinstance(row.parent, exp.Values):
            return None
        into, position = insert.this, row.expressions.index(node)
        known = columns_of(_within_schema(into), self._columns)
        names = [one.name for one in into.expressions] if isinstance(into, exp.Schema) else []
        wanted = names[position] if position < len(names) else None
        column = (
            next((one for one in known if one.name == wanted), None)
            if names
            else (known[position] if position < len(known) else None)
        )
        if column is None:
            return None
        if column.is_key and column.references is not None:
            return ColumnValue(column.references)
        if not column.is_key:
            return ColumnValue(column.path)
        self.new.add(number)
        return _new_key(column)

    def _value_of(self, node: exp.Expression) -> Parameter | None:
        column = self._column(node)
        return None if column is None else ColumnValue(column.path)

    def _column(self, node: exp.Expression) -> Column | None:
        return column_of(within_wrapping(node), self._columns)


def _new_key(column: Column) -> Parameter | None:
    """Return a value that a unique column does not have yet; None if none can be made."""
    if column.is_integer:
        return NewKey(column.path)
    return _NEW_KEYS.get(column.type)


def _within_schema(into: exp.Expression) -> exp.Expression:
    """Return the table of ``INSERT INTO table(columns)``."""
    return into.this if isinstance(into, exp.Schema) else into


def _other_operand(node: exp.Expression, parent: exp.Expression) -> exp.Expression:
    other: exp.Expression = parent.this if node.arg_key == "expression" else parent.expression
    return other


def _conjunction(node: exp.Expression) -> exp.Expression:
    """Return the outermost AND that a condition is part of, or the condition itself."""
    while isinstance(node.parent, exp.And | exp.Paren):
        node = node.parent
    return node
