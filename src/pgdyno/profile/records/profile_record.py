"""A profile: the account of a transaction with its windows and remarks, as printed and stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from pgdyno.profile.records.microarchitecture import DataMisses, Microarchitecture, TextLayout

SHOWN_SHARE = 0.02
"""The smallest gain for which advice is shown. Arbitrary."""


class AccountGroup(StrEnum):
    """The groups of the account, in display order."""

    CLIENT = "client"
    WAKING = "waking up"
    QUEUE = "run queue"
    SERVER = "server"
    WAITING = "waiting"
    STOLEN = "stolen"


@dataclass(frozen=True)
class Time:
    """Microseconds per transaction: a mean over cycles; with at least two, its 95 % confidence interval."""

    us: float
    low_us: float | None = None
    high_us: float | None = None


@dataclass(frozen=True)
class AccountLine:
    """A part of a transaction's time: its mean, and its value in each cycle in µs.

    ``kernel_us`` is the part spent in the kernel; None if unknown.
    """

    group: AccountGroup
    name: str
    time: Time
    source: str
    by_cycle: tuple[float, ...] = ()
    kernel_us: float | None = None


@dataclass(frozen=True)
class KernelEntry:
    """CPU time of the server's sessions in the kernel, for one system call, or page faults, or interrupts."""

    name: str
    time: Time


@dataclass(frozen=True)
class StatementTime:
    """A statement's figures from pg_stat_statements, per transaction; times in µs.

    ``name`` is the workload's, possibly empty. ``rows_read`` are the rows of tables that a call reads by its
    plan; None if unknown. ``node`` is the plan's dearest node, with its share of the plan's cost. ``waits``
    are shares of the statement's samples by wait event, the largest first; "CPU" is without a wait event.
    """

    sql: str
    calls: float
    planning_us: float
    executing_us: float
    rows: float
    blocks: float
    wal_records: float
    name: str = ""
    rows_read: float | None = None
    is_estimated: bool = False
    node: str = ""
    node_share: float = 0.0
    waits: tuple[tuple[str, float], ...] = ()

    @property
    def time_us(self) -> float:
        """Its time per transaction."""
        return self.planning_us + self.executing_us


def share_of(statement: StatementTime, statements: Iterable[StatementTime]) -> float:
    """Return a statement's share of the time of all statements."""
    return statement.time_us / (sum(one.time_us for one in statements) or 1.0)


@dataclass(frozen=True)
class Remedy:
    """A remedy for lines of the account.

    ``gain`` is the upper bound of the gain in throughput: 0.1 is 10%. ``levers`` are names of pgdyno's
    levers, possibly none.
    """

    lines: tuple[str, ...]
    gain: float
    levers: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class StackCount:
    """The number of samples of a stack; ``frames`` are functions, outermost first."""

    frames: tuple[str, ...]
    samples: int


@dataclass(frozen=True)
class TransactionProfile:
    """The account of one variant's transaction.

    ``sessions`` is the mean number of sessions in transactions. ``sampling_slowdown`` is the additional
    latency during sampling. ``cpu_share`` is the utilisation of the server's CPUs; None if not visible.
    ``background_us`` is the CPU time of the server's other processes. ``remarks`` state what is unknown, why,
    and the cost of measuring. ``counted`` is from hardware counters, ``simulated`` from a simulated
    processor; ``data_misses`` are the latter's misses by structure. ``layouts`` are the program's executed
    code by address, one per source.
    """

    variant: str
    workload: str
    sessions: float
    seconds: float
    transactions_per_s: float
    latency: Time
    lines: tuple[AccountLine, ...]
    kernel: tuple[KernelEntry, ...]
    statements: tuple[StatementTime, ...]
    background_us: float
    cpu_share: float | None
    sampling_slowdown: Time | None
    advice: tuple[Remedy, ...] = ()
    remarks: tuple[str, ...] = ()
    stacks: tuple[StackCount, ...] = ()
    counted: Microarchitecture | None = None
    simulated: Microarchitecture | None = None
    data_misses: DataMisses | None = None
    layouts: tuple[TextLayout, ...] = ()

    @property
    def unaccounted_us(self) -> float:
        """The time outside all lines, in µs; negative if lines overlap."""
        return self.latency.us - sum(line.time.us for line in self.lines)

    @property
    def unaccounted_share(self) -> float:
        """The unaccounted share of a transaction's time."""
        return self.unaccounted_us / self.latency.us

    def of_group(self, group: AccountGroup) -> Iterator[AccountLine]:
        """Yield a group's lines, longest first."""
        yield from sorted((one for one in self.lines if one.group is group), key=lambda one: -one.time.us)
