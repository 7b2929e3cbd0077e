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
from pgdyno.workload.capture.arguments import NOTHING_NAMED, NamedObjects, argument_of
from pgdyno.workload.capture.name_resolution import columns_of, named_column, table_column, why_unknown
from pgdyno.workload.capture.syntax import (
    array_operand,
    number_of,
    parameter_count,
    tree,
    within_wrapping,
    without_sums,
    without_wrapping,
)

_LOWER = (exp.GT, exp.GTE)
_UPPER = (exp.LT, exp.LTE)
_COMPARISONS = (exp.EQ, exp.NEQ, *_LOWER, *_UPPER, exp.NullSafeEQ, exp.NullSafeNEQ)
_PATTERNS = (exp.Like, exp.ILike)
_OF_TIME = ("date", "time", "interval")  # beginnings of types
_NOT_ALL_ROWS = (exp.Where, exp.Group, exp.Having, exp.Distinct, exp.AggFunc, exp.Window, exp.Subquery)
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
    "time without time zone": Constant("now"),
    "time with time zone": Constant("now"),
}
"""Arbitrary values by type, for parameters without any other information."""


@dataclass(frozen=True)
class Parameters:
    """A statement's parameters in order; ``guessed`` are the numbers of those drawn by type only.

    ``unknown`` are the numbers of parameters that cannot be drawn, ``new`` of those that need a value not yet
    in any row. ``widths`` has the widths of ranges by column. ``unmeasured`` has the columns of ranges of
    unknown width, as in aggregates, by the number of the upper bound. ``notes`` state assumptions.
    ``arguments`` are notes on arguments of functions by number; for unknown ones, the reasons.
    """

    drawn: tuple[Parameter, ...]
    guessed: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()
    new: frozenset[int] = frozenset()
    widths: Mapping[str, int] = field(default_factory=dict)
    unmeasured: Mapping[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    arguments: Mapping[int, str] = field(default_factory=dict)


def parameters_of(
    sql: str,
    types: Sequence[str],
    columns: Sequence[Column],
    seen: Seen,
    numbers: Sequence[Mapping[int, int]] | None = None,
    named: NamedObjects = NOTHING_NAMED,
) -> Parameters:
    """Return how to draw a statement's parameters. ``types`` are the types that the server infers.

    ``numbers`` are the integers among the parameters of some calls, by parameter number. None means that the
    rows returned by calls are known instead.
    """
    count = parameter_count(sql)
    places = _Places(sql, columns, seen, numbers)
    meanings = places.meanings(named) if count else {}
    drawn: list[Parameter] = []
    guessed: list[int] = []
    unknown: list[int] = []
    for number in range(1, count + 1):
        meaning = meanings.get(number)
        type_ = types[number - 1] if number <= len(types) else ""
        if meaning is STEP and type_.startswith(_OF_TIME):
            meaning = None
        if meaning is None and number in places.arguments:
            unknown.append(number)
        elif meaning is None:
            meaning = _BY_TYPE.get(type_)
            (unknown if meaning is None else guessed).append(number)
        drawn.append(meaning or Constant(None))
    return Parameters(
        tuple(drawn),
        tuple(guessed),
        tuple(unknown),
        frozenset(places.new),
        places.widths,
        places.unmeasured,
        tuple(dict.fromkeys(places.notes)),
        places.arguments,
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
        self._seen = seen
        self._rows = max(1, math.ceil(seen.rows / seen.calls - 0.01))
        self._seconds = seen.time_ms / seen.calls / 1000
        self.widths: dict[str, int] = {}
        self.unmeasured: dict[int, str] = {}
        self.new: set[int] = set()
        self.notes: list[str] = []
        self.arguments: dict[int, str] = {}
        self._named = NOTHING_NAMED
        self._shifted: set[int] = set()  # bounds with an interval added or subtracted
        self._lower: dict[tuple[int, str], int] = {}  # by condition and column: the lower bound's parameter

    def meanings(self, named: NamedObjects) -> dict[int, Parameter]:
        """Return how to draw parameters, by number, without the unknown ones."""
        self._named = named
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
        argument = argument_of(node, number, self._named, self._columns, self._seconds)
        if argument is None:
            return self._by_place(number, node)
        if argument.note:
            self.arguments[number] = argument.note
        return argument.drawn

    def _by_place(self, number: int, node: exp.Expression) -> Parameter | None:
        parent = node.parent
        meaning: Parameter | None = None
        if isinstance(parent, exp.Limit | exp.Fetch):
            meaning = self._limit(number, parent)
        elif isinstance(parent, exp.Offset):
            meaning = self._offset(number, parent)
        elif isinstance(parent, exp.Tuple):
            meaning = self._inserted(number, node, parent) or self._in_row(node, parent)
        elif isinstance(parent, exp.Any):
            meaning = self._array(parent)
        elif (elements_of := array_operand(node)) is not None:
            meaning = self._value_of(elements_of)
        elif isinstance(parent, exp.In) and node.arg_key == "expressions":
            meaning = self._value_of(parent.this)
        elif isinstance(parent, exp.Between):
            meaning = self._bound(number, parent.this, is_lower=node.arg_key == "low", condition=parent)
        elif isinstance(parent, _COMPARISONS + _PATTERNS):
            meaning = self._compared(number, node, parent)
        elif isinstance(parent, exp.Add | exp.Sub):
            meaning = self._added(number, node, parent)
        return meaning

    def _added(self, number: int, node: exp.Expression, parent: exp.Expression) -> Parameter | None:
        """Return the number added to a column, or the time to which an interval is added in a comparison."""
        if self._column(_other_operand(node, parent)) is not None:
            return STEP
        if not isinstance(node, exp.Cast) or node.to.this not in exp.DataType.TEMPORAL_TYPES:
            return None
        self._shifted.add(number)
        return self._by_place(number, without_sums(node))

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

    def _limit(self, number: int, limit: exp.Expression) -> Parameter | None:
        """Return the median LIMIT seen, or the number of rows that a call returns."""
        if self._numbers is not None:
            return self._median(number)
        if limit.parent is not self._tree and not isinstance(self._tree, exp.Insert):
            self.notes.append(
                f"LIMIT ${number} of a subquery is unknown: {self._rows} is used, the rows of a whole call"
            )
        return Constant(str(self._rows))

    def _offset(self, number: int, offset: exp.Expression) -> Parameter:
        """Return the median OFFSET seen, or the rows that an index scan passes in the blocks of a call."""
        if self._numbers is not None:
            found = self._median(number)
            if found is None:
                self.notes.append(f"OFFSET ${number} is unknown: 0 is used")
            return found or Constant("0")
        blocks, returned = self._seen.blocks / self._seen.calls, self._seen.rows / self._seen.calls
        column = self._ordered_by(offset)
        rows = 0
        if column is None or column.scan is None:
            self.notes.append(
                f"OFFSET ${number} is unknown: 0 is used; a call of the original reads {blocks:,.0f} blocks"
            )
        else:
            scan, is_index_only = column.scan, self._names_only(column)
            passed = min(scan.rows, scan.rows_in(blocks, is_index_only=is_index_only))
            rows = max(0, round(passed - returned))
            self.notes.append(
                f"OFFSET ${number} is unknown: {rows} is used, because a call of the original reads "
                f"{blocks:,.0f} blocks, assumed to be those of an index scan in the order of {column.path}"
            )
        return Constant(str(rows))

    def _ordered_by(self, offset: exp.Expression) -> Column | None:
        """Return the column that orders a query of all rows of one table; None for other queries."""
        query = self._tree
        if not isinstance(query, exp.Select) or offset.parent is not query or query.find(*_NOT_ALL_ROWS):
            return None
        ordered = query.find(exp.Ordered)
        if ordered is None or len(list(query.find_all(exp.Table))) != 1:
            return None
        if bool(ordered.args.get("desc")) != bool(ordered.args.get("nulls_first")):
            return None  # an index has NULL at the other end
        return named_column(ordered.this, self._columns)

    def _names_only(self, column: Column) -> bool:
        """Whether a statement reads one column alone, which its index has."""
        named = {one.name for one in self._tree.find_all(exp.Column, exp.Star)} if self._tree else set()
        return named == {column.name}

    def _median(self, number: int) -> Parameter | None:
        """Return the median of the values in ``numbers``; None if it has none."""
        seen = [call[number] for call in self._numbers or () if number in call]
        return Constant(str(median_low(seen))) if seen else None

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
        elif key in self._lower and number in self._shifted:
            return SameValue(self._lower[key])
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
        column = None if column is None else self._of_table(column)
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
        named = named_column(within_wrapping(node), self._columns)
        return None if named is None else self._of_table(named)

    def _of_table(self, named: Column) -> Column | None:
        """Return the table's column that a named one shows; None, with a note, if it is unknown."""
        found = table_column(named, self._columns)
        if found is None:
            self.notes.append(f"{why_unknown(named, self._columns)}, so its values are unknown")
        return found


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
