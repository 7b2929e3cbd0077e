"""A profile: the account of a transaction with its windows and remarks, as it is printed and stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from pgdyno.profile.records.microarchitecture import DataMisses, Microarchitecture, TextLayout

SHOWN_SHARE = 0.02
"""Of a transaction's time: below it, advice is not worth a line. Arbitrary."""


class AccountGroup(StrEnum):
    """The groups of the account, in the order in which they are shown."""

    CLIENT = "client"
    WAKING = "waking up"
    QUEUE = "run queue"
    SERVER = "server"
    WAITING = "waiting"
    STOLEN = "stolen"


@dataclass(frozen=True)
class Time:
    """Microseconds per transaction: a mean over cycles and its 95 % interval. Fewer than two have none."""

    us: float
    low_us: float | None = None
    high_us: float | None = None


@dataclass(frozen=True)
class AccountLine:
    """A part of a transaction's time: the mean, and the value of each cycle in µs.

    ``kernel_us`` is how much of it passed in the kernel, where known.
    """

    group: AccountGroup
    name: str
    time: Time
    source: str
    by_cycle: tuple[float, ...] = ()
    kernel_us: float | None = None


@dataclass(frozen=True)
class KernelEntry:
    """CPU time of the server's sessions in the kernel, by system call, page fault or interrupt."""

    name: str
    time: Time


@dataclass(frozen=True)
class StatementTime:
    """A statement, as pg_stat_statements counts it: per transaction, times in µs."""

    sql: str
    calls: float
    planning_us: float
    executing_us: float
    rows: float
    blocks: float
    wal_records: float


@dataclass(frozen=True)
class Remedy:
    """A means of shortening lines.

    ``gain`` is the most that it could bring: 0.1 is a tenth more transactions. ``levers`` are pgdyno's, by
    name; there may be none.
    """

    lines: tuple[str, ...]
    gain: float
    levers: tuple[str, ...]
    text: str


@dataclass(frozen=True)
class StackCount:
    """How often a stack was sampled; ``frames`` are functions, outermost first."""

    frames: tuple[str, ...]
    samples: int


@dataclass(frozen=True)
class TransactionProfile:
    """The account of one variant's transaction.

    ``sessions`` are those in transactions, on average. ``sampling_slowdown`` is how much slower transactions
    were while they were sampled. ``cpu_share`` is how busy the server's CPUs were; None: that is not seen.
    ``background_us`` is CPU time of the server's other processes. ``remarks`` say what could not be found
    out, and why, and what finding out has cost. ``counted`` is what hardware counters say,
    ``simulated`` a simulated processor; ``data_misses`` are its misses by structure; ``layouts`` are the
    program's code by place, by each that shows it.
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
        """The time that no line accounts for; negative where lines overlap."""
        return self.latency.us - sum(line.time.us for line in self.lines)

    @property
    def unaccounted_share(self) -> float:
        """Its share of a transaction's time."""
        return self.unaccounted_us / self.latency.us

    def of_group(self, group: AccountGroup) -> Iterator[AccountLine]:
        """Yield a group's lines, longest first."""
        yield from sorted((one for one in self.lines if one.group is group), key=lambda one: -one.time.us)
