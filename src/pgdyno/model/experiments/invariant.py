"""Invariants of a workload: query results that must hold before and after its load."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

Value = bool | int | float | str
_TRUE, _FALSE = "t", "f"  # PostgreSQL's output


@dataclass(frozen=True)
class Is:
    """The query returns this value, in one row; numbers are compared by value (1 equals 1.00)."""

    value: Value


@dataclass(frozen=True)
class Unchanged:
    """The query returns the same after the load as before it."""


@dataclass(frozen=True)
class NoRows:
    """The query returns no row."""


Expectation = Is | Unchanged | NoRows


@dataclass(frozen=True)
class Invariant:
    """A query (SQL) and its expected result before and after each load."""

    name: str
    sql: str
    expected: Expectation


@dataclass(frozen=True)
class QueryAnswer:
    """The value of a query's first row, None: NULL; and the number of rows, 2: several."""

    rows: int
    value: str | None = None

    def __str__(self) -> str:
        """Return the answer in words."""
        if self.rows != 1:
            return "several rows" if self.rows else "no row"
        return "NULL" if self.value is None else self.value


def why_wrong(expected: Expectation, answer: QueryAnswer) -> str | None:
    """Return why an answer violates the expectation at any time; None if it does not."""
    match expected:
        case Is(value) if answer.rows != 1 or not _is_equal(value, answer.value):
            return f"its query returns {answer}, but must return {as_shown(value)}"
        case NoRows() if answer.rows:
            what = "several rows" if answer.rows > 1 else f"a row, {answer}"
            return f"its query returns {what}, but must return none"
        case Unchanged() if answer.rows > 1:
            return "its query returns several rows, which cannot be compared"
    return None


def why_broken(expected: Expectation, before: QueryAnswer, after: QueryAnswer) -> str | None:
    """Return how a load broke an invariant that held before it; None if it did not."""
    if isinstance(expected, Unchanged) and before != after:
        return f"its query returned {before} before the load and {after} after it"
    return why_wrong(expected, after)


def _is_equal(value: Value, text: str | None) -> bool:
    if isinstance(value, bool):
        return text == (_TRUE if value else _FALSE)
    if isinstance(value, str) or text is None:
        return text == value
    try:
        return Decimal(text) == Decimal(repr(value))
    except InvalidOperation:
        return False


def as_shown(value: Value) -> str:
    """Return a value as PostgreSQL shows it."""
    if isinstance(value, bool):
        return _TRUE if value else _FALSE
    return str(value)
