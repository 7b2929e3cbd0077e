"""Ranges that a statement compares columns with: which parameters are their ends, and how wide they are."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from statistics import median_low
from typing import TypeAlias

from sqlglot import exp

from pgdyno.model.experiments.captured import ColumnValue, Parameter, RangeEnd, SameValue
from pgdyno.postgres.catalogued_tables import Column
from pgdyno.postgres.statement_counts import Seen

TIME_OF_CALL = 0
"""Stands for the time of a call, in seconds, among the numbers of its parameters."""
_DAY_OF_CALL = -1
_Calls: TypeAlias = Mapping[int, Sequence[Mapping[int, float]]]
"""Numbers of calls by statement."""
OF_DAYS = ("date", "timestamp")
"""Beginnings of types that have widths in seconds."""
_NUMBERS = frozenset({"smallint", "integer", "bigint", "numeric", "real", "double precision"})
_WHOLE = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]{1,18}\.[0-9]{1,18}")
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[ T][0-9:.]+(?:[+-][0-9:]+|Z)?)?")
_INTERVAL = re.compile(r"(?:(-?[0-9]{1,6}) days?)?\s*(?:([0-9]{1,3}):([0-9]{2}):([0-9]{2}(?:\.[0-9]+)?))?")
_DAY_S = 86_400
_ZONE_S = 900  # offsets of time zones are multiples of it
_FARTHEST_ZONES_S = 26 * 3600  # from the easternmost one to the westernmost one
_FIRST_S = 365 * _DAY_S  # 1971-01-01
_LAST_S = 4_102_444_800  # 2100-01-01
_NOW_S = 30  # arbitrary: an application's clock may differ, and the statement comes later
_MOSTLY = 0.9  # of the calls: arbitrary
_LOWER = (exp.GT, exp.GTE)
_UPPER = (exp.LT, exp.LTE)
_OPEN = (exp.GT, exp.LT)
_OTHER_ROWS = (exp.Group, exp.Having, exp.Distinct, exp.AggFunc, exp.Window, exp.Limit, exp.Fetch, exp.Offset)


def measured(text: str) -> float | None:
    """Return a number, or seconds since 1970 of a date or timestamp, or seconds of an interval; else None.

    Whole numbers are integers. Times without a zone are taken as UTC.
    """
    if _WHOLE.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return float(text)
    if _MOMENT.fullmatch(text):
        try:
            moment = datetime.fromisoformat(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            return None
    interval = _INTERVAL.fullmatch(text) if text else None
    if interval is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in interval.groups())
    return days * _DAY_S + hours * 3600 + minutes * 60 + seconds


def is_current(calls: Sequence[Mapping[int, float]], number: int) -> bool | None:
    """Whether a parameter is the time of the call, or its date; None if it is unknown."""
    found = [_is_now(call[number], call) for call in calls if TIME_OF_CALL in call and number in call]
    return sum(found) >= _MOSTLY * len(found) if found else None


def _is_now(value: float, call: Mapping[int, float]) -> bool:
    if value % _DAY_S == 0:  # a date
        return value == call.get(_DAY_OF_CALL, call[TIME_OF_CALL] // _DAY_S * _DAY_S)
    return abs(value - call[TIME_OF_CALL]) <= _NOW_S


def on_its_clock(numbers: _Calls, writing: Collection[int]) -> tuple[_Calls, tuple[str, ...]]:
    """Return calls with the application's time in its time zone, and notes.

    That zone is the most frequent difference between the times in ``writing`` statements and their calls.
    """
    calls = [one for statement in writing for one in numbers.get(statement, ()) if TIME_OF_CALL in one]
    zones, days = Counter[int](), Counter[int]()
    pairs = [
        (value, one[TIME_OF_CALL]) for one in calls for number, value in one.items() if number != TIME_OF_CALL
    ]
    for value, at_s in pairs:
        apart = value - at_s
        zone = round(apart / _ZONE_S)
        is_near = abs(apart) <= _FARTHEST_ZONES_S and abs(apart - zone * _ZONE_S) <= _NOW_S
        if value % _DAY_S and is_near:
            zones[zone] += 1
    later_s = _most_frequent(zones) * _ZONE_S
    for value, at_s in pairs:
        day = round((value - (at_s + later_s) // _DAY_S * _DAY_S) / _DAY_S)
        if value % _DAY_S == 0 and abs(day) <= 1:
            days[day] += 1
    day_s = _most_frequent(days) * _DAY_S

    def shifted(one: Mapping[int, float]) -> Mapping[int, float]:
        if TIME_OF_CALL not in one:
            return one
        at_s = one[TIME_OF_CALL] + later_s
        return {**one, TIME_OF_CALL: at_s, _DAY_OF_CALL: at_s // _DAY_S * _DAY_S + day_s}

    notes = []
    if later_s and 0 not in zones:
        notes.append(
            f"written times are {abs(later_s) / 3600:g} h {'after' if later_s > 0 else 'before'} the call: "
            "they are taken for the current time of another time zone"
        )
    if day_s and 0 not in days:
        notes.append(
            f"written dates are of the day {'after' if day_s > 0 else 'before'} the call: they are taken for "
            "the current date of another time zone"
        )
    return {one: [shifted(call) for call in its] for one, its in numbers.items()}, tuple(notes)


def _most_frequent(offsets: Counter[int]) -> int:
    return max(offsets, key=lambda one: (offsets[one], -abs(one)), default=0)


def side_of(node: exp.Expression, compared: exp.Expression) -> str | None:
    """Return which end of a range a compared node is, ``lower`` or ``upper``; None if it is neither."""
    if isinstance(compared, exp.Between):
        return {"low": "lower", "high": "upper"}.get(node.arg_key or "")
    is_right = node.arg_key == "expression"
    if isinstance(compared, _LOWER if is_right else _UPPER):
        return "lower"
    return "upper" if isinstance(compared, _UPPER if is_right else _LOWER) else None


@dataclass(frozen=True)
class Shift:
    """The parameter of a number or interval that is added to an end, or subtracted, and its sign."""

    sign: int
    parameter: int | None


@dataclass(frozen=True)
class _End:
    number: int
    is_lower: bool
    is_open: bool
    shift: Shift | None


class Ranges:
    """The ranges in a statement. ``numbers`` are those of some calls, None: rows returned are known instead.

    ``widths`` has the width of a range by column, or its rows if it is not a range of integer keys;
    ``unmeasured`` the columns of ranges of unknown width, by the number of the parameter that ends them, and
    whether it is the lower end.
    ``same`` are parameters that shift the second end as others shift the first one.
    """

    def __init__(
        self, parsed: exp.Expression | None, seen: Seen, numbers: Sequence[Mapping[int, float]] | None
    ) -> None:
        self._tree = parsed
        self._rows = seen.rows / seen.calls
        self._numbers = numbers
        self.widths: dict[str, float] = {}
        self.unmeasured: dict[int, tuple[str, bool]] = {}
        self.same: dict[int, int] = {}
        self.notes: list[str] = []
        self._ends: dict[tuple[int, str, bool], _End] = {}

    def bound(
        self, number: int, column: Column, node: exp.Expression, compared: exp.Expression, shift: Shift | None
    ) -> Parameter:
        """Return a bound of a column; the second one of a range depends on the first one."""
        is_lower = side_of(node, compared) == "lower"
        condition = id(_conjunction(compared))
        own = _End(number, is_lower, isinstance(compared, _OPEN), shift)
        self._ends.setdefault((condition, column.path, is_lower), own)
        first = self._ends.get((condition, column.path, not is_lower))
        if first is None:
            return ColumnValue(column.path)
        lower, upper = (own, first) if is_lower else (first, own)
        seen = self._seen_widths(lower, upper, column)
        if own.shift and first.shift:
            self._share_shift(first.shift, own.shift)
        if (own.shift or first.shift) and not _are_moved(own, first) and not any(seen):
            is_wider = (lower.shift and lower.shift.sign < 0) or (upper.shift and upper.shift.sign > 0)
            if is_wider:
                return SameValue(first.number)
        return self._second(column, first, own, seen)

    def _share_shift(self, first: Shift, second: Shift) -> None:
        if first.parameter and second.parameter and first.parameter < second.parameter:
            self.same[second.parameter] = first.parameter

    def _seen_widths(self, lower: _End, upper: _End, column: Column) -> list[float]:
        """Return the widths of some calls, unless they show the value of an end because the other is known.

        Known are 0, times before 1971 or after 2100, ends that never vary, and 1 as the only lower end.
        """
        found: list[tuple[float, float]] = []
        for call in self._numbers or ():
            low, high = self._shifted(call, lower, upper), self._shifted(call, upper, lower)
            if low and high is not None and not (column.type.startswith(OF_DAYS) and _is_far(low, high)):
                found.append((low, high))
        lows, highs = {low for low, _ in found}, {high for _, high in found}
        is_known = lows == {1} if len(set(found)) < 2 else 1 in (len(lows), len(highs))
        return [] if is_known else sorted(high - low for low, high in found)

    @staticmethod
    def _shifted(call: Mapping[int, float], end: _End, other: _End) -> float | None:
        """Return an end in a call, shifted if both ends are moved: another shift is drawn by itself."""
        value = call.get(end.number)
        if value is None or end.shift is None or not _are_moved(end, other):
            return value
        by = None if end.shift.parameter is None else call.get(end.shift.parameter)
        if by is None:
            return None
        return value + end.shift.sign * (by * _DAY_S if isinstance(by, int) else by)

    def _second(self, column: Column, first: _End, own: _End, seen: Sequence[float]) -> Parameter:
        """Return the second end: one of the seen widths further, or as many rows as a call returns."""
        if column.type not in _NUMBERS and not column.type.startswith(OF_DAYS):
            self.notes.append(
                f"both ends of the range of {column.path} are drawn independently: it is no number"
            )
            return ColumnValue(column.path)
        if seen:
            self.widths[column.path] = median_low(seen)
        is_one = len(set(seen)) == 1 if seen else column.is_key
        if column.is_integer and is_one:
            width = int(seen[0]) if seen else self._width_in_rows(own, column)
            return SameValue(first.number, plus=-width if own.is_lower else width)
        is_open = first.is_open or own.is_open
        end = RangeEnd(first.number, column.path, tuple(seen), is_lower=own.is_lower, is_open=is_open)
        if seen:
            return end
        if not self._has_no_other_rows(column):
            self.unmeasured[own.number] = column.path, own.is_lower
            return end
        rows = float(f"{self._rows:.3g}")
        self.widths[column.path] = rows
        self.notes.append(
            f"the width of the range of {column.path} is unknown: it is chosen for {rows:g} rows of the "
            "table, as a call returns"
        )
        return replace(end, rows=rows)

    def _width_in_rows(self, end: _End, column: Column) -> int:
        """Return the width of a range of integer keys: the number of rows less one."""
        width = max(1, math.ceil(self._rows - 0.01)) - 1 if self._numbers is None else 0
        if self._numbers is not None or self._is_aggregate():
            self.unmeasured[end.number] = column.path, end.is_lower
        else:
            self.widths[column.path] = width
        return width

    def _is_aggregate(self) -> bool:
        """Whether a statement's number of returned rows differs from the number that it reads."""
        select = self._tree
        if not isinstance(select, exp.Select):
            return False
        has_one = not select.args.get("group") and any(one.find(exp.AggFunc) for one in select.expressions)
        return has_one or select.args.get("limit") is not None

    def _has_no_other_rows(self, column: Column) -> bool:
        """Whether a call returns, or writes, all rows of a range of its only table, and no others."""
        parsed = self._tree
        where = None if parsed is None or self._numbers is not None else parsed.args.get("where")
        if parsed is None or where is None or len(list(parsed.find_all(exp.Table))) != 1:
            return False
        if parsed.find(*_OTHER_ROWS) is not None or where.find(exp.Or, exp.Not) is not None:
            return False
        return {one.name for one in where.find_all(exp.Column)} == {column.name}


def _are_moved(end: _End, other: _End) -> bool:
    """Whether both ends of a range are shifted in the same direction."""
    return end.shift is not None and other.shift is not None and end.shift.sign == other.shift.sign


def _is_far(low: float, high: float) -> bool:
    """Whether one of two times stands for the beginning or end of all time."""
    return low < _FIRST_S or high >= _LAST_S


def _conjunction(node: exp.Expression) -> exp.Expression:
    """Return the outermost AND that a condition is part of, or the condition itself."""
    while isinstance(node.parent, exp.And | exp.Paren):
        node = node.parent
    return node
