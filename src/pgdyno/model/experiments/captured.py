"""A workload captured from a server: statements, their order in transactions, parameters, and invariants."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from statistics import fmean
from typing import Literal

from pgdyno.postgres.statement_counts import Ended, Seen

Distribution = Literal["uniform", "gaussian", "exponential", "pareto", "zipfian"]
PARAMETERISED: Mapping[Distribution, tuple[float, float]] = {
    "gaussian": (2.0, math.inf),
    "exponential": (math.ulp(0.0), math.inf),
    "zipfian": (1.001, 1000.0),
}
"""Distributions of pgbench, with the least and the greatest parameter that each takes."""


@dataclass(frozen=True)
class ColumnValue:
    """A value of a column, drawn with its frequency; ``column`` is written SCHEMA.TABLE.COLUMN."""

    column: str


@dataclass(frozen=True)
class NewKey:
    """A number above all values of a key column; unique to each call."""

    column: str


@dataclass(frozen=True)
class SameValue:
    """The value of an earlier parameter of the transaction, plus a number.

    ``statement`` names the call, None: this one; its parameters count from 1.
    """

    parameter: int
    statement: str | None = None
    plus: int = 0


@dataclass(frozen=True)
class RangeEnd:
    """The other end of a column's range that begins with an earlier parameter of the call.

    ``widths`` are equally likely, in seconds for dates and times. Without any, the range has ``rows`` rows on
    average; None: its end is any value further on. ``is_lower``: the earlier parameter is the upper end.
    ``is_open``: the range excludes one of its ends.
    """

    parameter: int
    column: str
    widths: tuple[float, ...] = ()
    rows: float | None = None
    is_lower: bool = False
    is_open: bool = False


@dataclass(frozen=True)
class ReturnedValue:
    """A value of the first row that an earlier call of the transaction returned, plus a number.

    ``statement`` names the call; its columns count from 1. Without a row it is NULL.
    """

    column: int
    statement: str
    plus: int = 0


@dataclass(frozen=True)
class ArrayOf:
    """An array of values of a column, each drawn like ``ColumnValue``."""

    column: str
    length: int


@dataclass(frozen=True)
class Between:
    """An integer from ``low`` to ``high``, by one of the driver's distributions.

    With a ``parameter`` it is pgbench's of that name, without one sysbench's with its defaults.
    """

    low: int
    high: int
    distribution: Distribution = "uniform"
    parameter: float | None = None


@dataclass(frozen=True)
class Constant:
    """A constant text; None is NULL."""

    value: str | None


@dataclass(frozen=True)
class Letters:
    """A text of random letters, from ``least`` to ``most`` of them."""

    least: int
    most: int


@dataclass(frozen=True)
class Ordinal:
    """1 in the first call of the statement in a transaction, 2 in the second, and so on."""


@dataclass(frozen=True)
class Uuid:
    """A random UUID."""


@dataclass(frozen=True)
class OneOf:
    """One of several texts, equally likely if there are no weights; ``nulls`` is the weight of NULL."""

    values: tuple[str, ...]
    weights: tuple[float, ...] = ()
    nulls: float = 0.0


OfColumn = ColumnValue | ArrayOf | NewKey | RangeEnd
"""Parameters with values that depend on those of a column."""
Independent = Between | Constant | Letters | Uuid | OneOf
"""Parameters that depend on no column, and on no other parameter."""
Parameter = OfColumn | SameValue | ReturnedValue | Ordinal | Independent
Value = bool | int | float | str
_TRUE, _FALSE = "t", "f"  # PostgreSQL's output
Protocol = Literal["simple", "extended", "prepared"]
Quantity = Literal["calls", "time", "rows", "blocks", "WAL records"]
QUANTITIES: tuple[Quantity, ...] = ("calls", "time", "rows", "blocks", "WAL records")
"""Quantities counted per statement; a log has calls and perhaps time."""


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


@dataclass(frozen=True)
class CapturedStatement:
    """A statement that is replayed: SQL with ``$1``, ``$2`` and so on.

    ``is_prepared``: it may be prepared by name. Statements that begin or end transactions are not prepared:
    pg_stat_statements would count only their first execution. ``favours``: parameters, by number, that are
    values of a column, but not as frequent as in the rows. They are drawn from equally likely parts of the
    column's values in order; given are the bounds of the parts, from 0 (lowest value) to 1 (highest).
    """

    name: str
    sql: str
    seen: Seen
    is_prepared: bool = True
    favours: Mapping[int, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class CapturedCall:
    """A call within a transaction; ``times`` is the mean number of executions, ``statement`` a name."""

    statement: str
    times: float
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True)
class CapturedTransaction:
    """A kind of transaction; ``weight`` is the number that were captured."""

    weight: float
    calls: tuple[CapturedCall, ...]


@dataclass(frozen=True)
class Omitted:
    """A statement that is not replayed, and why."""

    sql: str
    why: str
    seen: Seen


@dataclass(frozen=True)
class CapturedWorkload:
    """A captured workload. ``notes`` list the gaps, and the assumptions that fill them.

    ``cluster`` is the system identifier of the original cluster, ``search_path`` that of its sessions,
    ``protocol`` the protocol by which they send statements.
    ``counted`` are the quantities known for its statements; ``seconds`` 0: it was not observed while running.
    ``pauses_s`` are equally likely times between a transaction and the session's next one. ``sessions`` is
    the number of sessions, busy or pausing; None: unknown. ``ended`` counts the database's transactions, also
    those that are not replayed; None: unknown. ``assumed_share`` is the share of transactions with assumed
    statements. ``invariants`` are defined by the user.
    """

    name: str
    server_version: str
    cluster: int
    database: str
    seconds: float
    clients: int
    statements: tuple[CapturedStatement, ...]
    transactions: tuple[CapturedTransaction, ...]
    omitted: tuple[Omitted, ...] = ()
    notes: tuple[str, ...] = ()
    is_read_only: bool = False
    search_path: str = "public"
    counted: tuple[Quantity, ...] = QUANTITIES
    protocol: Protocol = "prepared"
    pauses_s: tuple[float, ...] = ()
    sessions: int | None = None
    ended: Ended | None = None
    assumed_share: float = 0.0
    invariants: tuple[Invariant, ...] = ()

    @property
    def has_values(self) -> bool:
        """Whether it contains values of the original's rows."""
        calls = (call for one in self.transactions for call in one.calls)
        return any(isinstance(parameter, OneOf) for call in calls for parameter in call.parameters)

    @property
    def transactions_per_s(self) -> float | None:
        """The original rate of the replayed transactions, per second; None: unknown."""
        return sum(one.weight for one in self.transactions) / self.seconds if self.seconds else None

    @property
    def pausing_clients(self) -> int:
        """The number of clients to replay with pauses: the number of sessions, for the original rate."""
        if self.sessions is not None:
            return self.sessions
        pausing = (self.transactions_per_s or 0.0) * fmean(self.pauses_s) if self.pauses_s else 0.0
        return max(1, round(self.clients + pausing))  # Little's law

    @property
    def replayed_share(self) -> float:
        """The replayed statements' share of all captured calls."""
        replayed = sum(one.seen.calls for one in self.statements)
        left_out = sum(one.seen.calls for one in self.omitted)
        return replayed / (replayed + left_out) if replayed else 0.0

    @property
    def shares(self) -> Mapping[str, float]:
        """The share of each replayed statement in their total time; in calls if no times are known."""
        has_times = any(one.seen.time_ms for one in self.statements)
        sizes = {one.name: one.seen.time_ms if has_times else one.seen.calls for one in self.statements}
        whole = sum(sizes.values()) or 1
        return {name: size / whole for name, size in sizes.items()}


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
