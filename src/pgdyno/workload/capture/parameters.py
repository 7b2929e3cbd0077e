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
    Independent,
    Letters,
    NewKey,
    Parameter,
    SameValue,
    Uuid,
)
from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.arguments import NOTHING_NAMED, NamedObjects, argument_of
from pgdyno.workload.capture.name_resolution import (
    inserted_column,
    named_column,
    table_column,
    uses_of,
    why_unknown,
)
from pgdyno.workload.capture.ranges import Ranges, Shift, is_current, side_of
from pgdyno.workload.capture.syntax import (
    array_operand,
    assigned,
    number_of,
    parameter_count,
    tree,
    within_wrapping,
    without_sums,
    without_wrapping,
)

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ)
_PATTERNS = (exp.Like, exp.ILike)
_OF_TIME = ("date", "time", "interval")  # beginnings of types
_NOT_ALL_ROWS = (exp.Where, exp.Group, exp.Having, exp.Distinct, exp.AggFunc, exp.Window, exp.Subquery)
STEP = Between(-100, 100)  # arbitrary: the number added to a column
UNCHANGED = Constant("0")  # added to a column with a CHECK constraint, which other numbers may violate
_NOW: Mapping[str, Independent] = {
    "date": Constant("today"),
    "timestamp without time zone": Constant("now"),
    "timestamp with time zone": Constant("now"),
}
_TEXTS = frozenset({"text", "character varying", "character"})
_NEW_LETTERS = 20  # a text of so many is almost certainly unique
_FEW_LETTERS = 6  # arbitrary: texts of fewer may be in a row
_BY_TYPE: Mapping[str, Independent] = {
    "smallint": Between(1, 100),
    "integer": Between(1, 100),
    "bigint": Between(1, 100),
    "numeric": Between(1, 100),
    "real": Between(1, 100),
    "double precision": Between(1, 100),
    **dict.fromkeys(_TEXTS, Letters(5, 20)),
    "boolean": Constant("true"),
    "uuid": Uuid(),
    "interval": Constant("1 day"),
    **_NOW,
    "time without time zone": Constant("now"),
    "time with time zone": Constant("now"),
}
"""Arbitrary values by type, for parameters without any other information."""


@dataclass(frozen=True)
class Parameters:
    """A statement's parameters in order; ``guessed`` are the numbers of those drawn by type only.

    ``unknown`` are the numbers of parameters that cannot be drawn, ``new`` of those that need a value not yet
    in any row. ``widths`` and ``unmeasured`` are those of ranges. ``notes`` state assumptions.
    ``arguments`` are notes on arguments of functions by number; for unknown ones, the reasons.
    """

    drawn: tuple[Parameter, ...]
    guessed: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()
    new: frozenset[int] = frozenset()
    widths: Mapping[str, float] = field(default_factory=dict)
    unmeasured: Mapping[int, tuple[str, bool]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    arguments: Mapping[int, str] = field(default_factory=dict)


def parameters_of(
    sql: str,
    types: Sequence[str],
    columns: Sequence[Column],
    seen: Seen,
    numbers: Sequence[Mapping[int, float]] | None = None,
    named: NamedObjects = NOTHING_NAMED,
) -> Parameters:
    """Return how to draw a statement's parameters. ``types`` are the types that the server infers.

    ``numbers`` are numbers and times among the parameters of some calls, by parameter number. None: the rows
    returned by calls are known instead.
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
        places.ranges.widths,
        places.ranges.unmeasured,
        tuple(dict.fromkeys((*places.notes, *places.ranges.notes))),
        places.arguments,
    )


class _Places:
    """The parameters of one statement in its syntax tree."""

    def __init__(
        self,
        sql: str,
        columns: Sequence[Column],
        seen: Seen,
        numbers: Sequence[Mapping[int, float]] | None,
    ) -> None:
        self._tree = tree(sql)
        self._columns = columns
        self._numbers = numbers
        self._seen = seen
        self._rows = max(1, math.ceil(seen.rows / seen.calls - 0.01))
        self._seconds = seen.time_ms / seen.calls / 1000
        self.ranges = Ranges(self._tree, seen, numbers)
        self.new: set[int] = set()
        self.notes: list[str] = []
        self.arguments: dict[int, str] = {}
        self._named = NOTHING_NAMED
        self._assumed_now: list[int] = []
        self._shifts: dict[int, Shift] = {}  # of bounds with an interval added or subtracted

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
        if self._assumed_now:
            listed = ", ".join(f"${number}" for number in self._assumed_now)
            self.notes.append(
                f"the dates and times that it writes are unknown: the current ones are used ({listed})"
            )
        return {number: meaning for number, meaning in found.items() if meaning is not None}

    def _meaning(self, number: int, node: exp.Expression) -> Parameter | None:
        if number in self.ranges.same:
            return SameValue(self.ranges.same[number])
        argument = argument_of(node, number, self._named, self._columns, self._seconds)
        if argument is None:
            places = (node, *map(without_wrapping, uses_of(node)))
            each = (self._inserted(number, one) or self._by_place(number, one) for one in places)
            return next((one for one in each if one is not None), None)
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
            meaning = self._in_row(node, parent)
        elif isinstance(parent, exp.Any):
            meaning = self._array(parent)
        elif (elements_of := array_operand(node)) is not None:
            meaning = self._value_of(elements_of)
        elif isinstance(parent, exp.In) and node.arg_key == "expressions":
            meaning = self._value_of(parent.this)
        elif isinstance(parent, (exp.Between, *_COMPARISONS, *_PATTERNS)):
            meaning = self._compared(number, node, parent)
        elif isinstance(parent, exp.Add | exp.Sub):
            meaning = self._added(number, node, parent)
        return meaning

    def _added(self, number: int, node: exp.Expression, parent: exp.Expression) -> Parameter | None:
        """Return the number added to a column, or the time to which an interval is added in a comparison."""
        column = self._column(_other_operand(node, parent))
        if column is not None:
            target = assigned(parent.find_ancestor(exp.EQ))
            its = None if target is None else self._column(target)
            if its is None or not its.is_checked:
                return STEP
            self.notes.append(f"${number} is 0: {its.path} has a CHECK constraint, which others may violate")
            return UNCHANGED
        if not isinstance(node, exp.Cast) or node.to.this not in exp.DataType.TEMPORAL_TYPES:
            return None
        sign = -1 if isinstance(parent, exp.Sub) and node.arg_key == "this" else 1
        self._shifts[number] = Shift(sign, number_of(within_wrapping(_other_operand(node, parent))))
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
            return self._median(number, "LIMIT")
        if limit.parent is not self._tree and not isinstance(self._tree, exp.Insert):
            self.notes.append(
                f"LIMIT ${number} of a subquery is unknown: {self._rows} is used, the rows of a whole call"
            )
        return Constant(str(self._rows))

    def _offset(self, number: int, offset: exp.Expression) -> Parameter:
        """Return the median OFFSET seen, or the rows that an index scan passes in the blocks of a call."""
        if self._numbers is not None:
            found = self._median(number, "OFFSET")
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

    def _median(self, number: int, clause: str) -> Parameter | None:
        """Return the median of the values in ``numbers``, with a note if they vary; None if it has none."""
        seen = [call[number] for call in self._numbers or () if number in call]
        if not seen:
            return None
        median, least, most = median_low(seen), min(seen), max(seen)
        if least < most:
            seen_as = f"was from {least} to {most} in the first calls"
            self.notes.append(f"{clause} ${number} {seen_as}: {median} is used")
        return Constant(str(median))

    def _compared(self, number: int, node: exp.Expression, parent: exp.Expression) -> Parameter | None:
        other = parent.this if isinstance(parent, exp.Between) else _other_operand(node, parent)
        column = self._column(other)
        if column is None:
            return None
        if side_of(node, parent) is not None:
            return self.ranges.bound(number, column, node, parent, self._shifts.get(number))
        return self._now(number, column) if assigned(parent) is not None else ColumnValue(column.path)

    def _inserted(self, number: int, node: exp.Expression) -> Parameter | None:
        """Return the value for a column of a new row."""
        named = inserted_column(node, self._columns)
        column = None if named is None else self._of_table(named)
        if column is None:
            return None
        referenced = next((one for one in self._columns if one.path == column.references), None)
        if referenced is not None and referenced.is_empty and column.is_required:
            self.arguments[number] = f"{column.path} references {column.references}, which has no rows"
            return None
        if column.is_key and column.references is not None:
            return ColumnValue(column.references)
        if not column.is_key:
            return self._now(number, column)
        self.new.add(number)
        if column.length is not None and column.type in _TEXTS and column.length < _FEW_LETTERS:
            self.notes.append(
                f"${number}: new values of {column.path} may exist, with {column.length} letters"
            )
        return _new_key(column)

    def _now(self, number: int, column: Column) -> Parameter:
        """Return a written row's value: the current time, if it was that or if nothing is known."""
        now = _NOW.get(column.type)
        was_now = None if now is None or self._numbers is None else is_current(self._numbers, number)
        if now is None or was_now is False:
            return ColumnValue(column.path)
        if was_now is None:
            self._assumed_now.append(number)
        self.new.add(number)
        return now

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
    if column.type in _TEXTS:
        return _fitting(Letters(_NEW_LETTERS, _NEW_LETTERS), column)
    return Uuid() if column.type == "uuid" else None


def by_type(column: Column) -> Independent | None:
    """Return an arbitrary value of a column's type; None if none is known."""
    drawn = _BY_TYPE.get(column.type)
    return _fitting(drawn, column) if isinstance(drawn, Letters) else drawn


def _fitting(letters: Letters, column: Column) -> Letters:
    most = letters.most if column.length is None else min(letters.most, column.length)
    return Letters(min(letters.least, most), most)


def _other_operand(node: exp.Expression, parent: exp.Expression) -> exp.Expression:
    other: exp.Expression = parent.this if node.arg_key == "expression" else parent.expression
    return other
