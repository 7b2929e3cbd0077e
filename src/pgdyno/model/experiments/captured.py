"""A workload that was captured from a server: statements, how they form transactions, parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from pgdyno.model.experiments.invariant import Invariant
from pgdyno.postgres.statement_counts import Seen

Distribution = Literal["uniform", "gaussian", "pareto", "zipfian"]


@dataclass(frozen=True)
class ColumnValue:
    """A value that a column has, as often as its rows have it; ``column`` is written SCHEMA.TABLE.COLUMN."""

    column: str


@dataclass(frozen=True)
class NewKey:
    """A number beyond all that a key column has; no two calls get the same."""

    column: str


@dataclass(frozen=True)
class SameValue:
    """The value of an earlier parameter of the transaction, plus a number.

    ``statement`` names the call, None being this one; its parameters count from 1.
    """

    parameter: int
    statement: str | None = None
    plus: int = 0


@dataclass(frozen=True)
class ReturnedValue:
    """A value of the first row that an earlier call of the transaction has returned; NULL without a row.

    ``statement`` names the call; its columns count from 1.
    """

    column: int
    statement: str


@dataclass(frozen=True)
class ArrayOf:
    """An array of values of a column, each as ``ColumnValue`` is drawn."""

    column: str
    length: int


@dataclass(frozen=True)
class Between:
    """Any integer from ``low`` to ``high``, by a distribution of the driver's."""

    low: int
    high: int
    distribution: Distribution = "uniform"


@dataclass(frozen=True)
class Constant:
    """Always the same text; None is NULL."""

    value: str | None


@dataclass(frozen=True)
class Letters:
    """A text of random letters, from ``least`` to ``most`` of them."""

    least: int
    most: int


@dataclass(frozen=True)
class Uuid:
    """A random UUID."""


@dataclass(frozen=True)
class OneOf:
    """One of several texts, equally likely if there are no weights; ``nulls`` is the weight of NULL."""

    values: tuple[str, ...]
    weights: tuple[float, ...] = ()
    nulls: float = 0.0


Parameter = (
    ColumnValue | ArrayOf | NewKey | SameValue | ReturnedValue | Between | Constant | Letters | Uuid | OneOf
)
Protocol = Literal["simple", "extended", "prepared"]
Quantity = Literal["calls", "time", "rows", "blocks", "WAL records"]
QUANTITIES: tuple[Quantity, ...] = ("calls", "time", "rows", "blocks", "WAL records")
"""Counts of statements; a log has calls and perhaps time."""


@dataclass(frozen=True)
class CapturedStatement:
    """A statement that is replayed: SQL with ``$1``, ``$2`` and so on.

    ``is_prepared``: it may be prepared by name. What begins and ends transactions is not: of prepared ones,
    pg_stat_statements counts the first execution alone.
    """

    name: str
    sql: str
    seen: Seen
    is_prepared: bool = True


@dataclass(frozen=True)
class CapturedCall:
    """A call within a transaction; ``times`` is how often on average, ``statement`` its name."""

    statement: str
    times: float
    parameters: tuple[Parameter, ...] = ()


@dataclass(frozen=True)
class CapturedTransaction:
    """A kind of transactions; ``weight`` is how many of them there were."""

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
    """All that is known of a workload. ``notes`` name the gaps, and the assumptions in their place.

    ``cluster`` is the identifier of the cluster that it comes from, ``search_path`` that of its sessions.
    ``protocol`` is how they send statements.
    ``counted`` are the quantities that are known of its statements; ``seconds`` 0 means that it was not seen
    at work. ``pauses_s`` are times from a transaction to its session's next, each as likely as the others;
    ``sessions`` are those that pause, or are at work; none: it is not known. ``invariants`` are its user's.
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
    invariants: tuple[Invariant, ...] = ()

    @property
    def has_values(self) -> bool:
        """Whether it has values of the original's rows."""
        calls = (call for one in self.transactions for call in one.calls)
        return any(isinstance(parameter, OneOf) for call in calls for parameter in call.parameters)

    @property
    def transactions_per_s(self) -> float | None:
        """How many transactions there were in a second, of those that are replayed; None: it is not known."""
        return sum(one.weight for one in self.transactions) / self.seconds if self.seconds else None

    @property
    def pausing_clients(self) -> int:
        """As many clients as there were sessions: with their pauses, they are as fast as the original."""
        return self.sessions or self.sessions_with(self.clients)

    def sessions_with(self, clients: float) -> int:
        """Return how many sessions there are if ``clients`` are at work on average, and others pause."""
        pausing = (self.transactions_per_s or 0.0) * fmean(self.pauses_s) if self.pauses_s else 0.0
        return max(1, round(clients + pausing))  # Little's law

    @property
    def replayed_share(self) -> float:
        """The share of the calls that were seen whose statements are replayed."""
        replayed = sum(one.seen.calls for one in self.statements)
        left_out = sum(one.seen.calls for one in self.omitted)
        return replayed / (replayed + left_out) if replayed else 0.0

    @property
    def shares(self) -> Mapping[str, float]:
        """The share of each statement in the time of all that are replayed; in calls where none is known."""
        has_times = any(one.seen.time_ms for one in self.statements)
        sizes = {one.name: one.seen.time_ms if has_times else one.seen.calls for one in self.statements}
        whole = sum(sizes.values()) or 1
        return {name: size / whole for name, size in sizes.items()}
