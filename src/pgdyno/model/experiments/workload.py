"""A workload: its data set, its transactions, and their effect on the data."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from pgdyno.model.experiments.captured import CapturedWorkload

QUERY = "query"  # the driver's workload that executes a single given statement
USER_SCRIPTS = "scripts"  # name of the workload made of a user's pgbench scripts
DRIVER = "driver"  # the bundled load generator, pgdyno-driver
TPCHGEN = "tpchgen"  # generates TPC-H's rows
DUMP = "pg_restore"  # restores a copy of a user's database
CAPTURED = "captured"  # the driver's workload that issues captured workloads
PROTOCOLS = ("simple", "extended", "prepared")  # query protocols, as pgbench names them
PREPARED = PROTOCOLS[-1]
SCHEMAS = "schemas"  # option of a data set with separate tables for each client
_OWN_TABLES = "own tables"
SCHEMA = "pgdyno_loop"  # of the functions, in databases that have them
CLIENT = "client"
C_LOOP = "C loop"
PLPGSQL_LOOP = "PL/pgSQL loop"
CURVES = (CLIENT, C_LOOP, PLPGSQL_LOOP)  # by numbers of clients
EMPTY_LOOP = "empty loop"  # of the loop in C
ONE_QUERY = "one query"  # over all rows: the executor starts only once
BESIDE = (EMPTY_LOOP, ONE_QUERY)  # at one client, for comparison
AGGREGATE = "aggregate"  # each execution is a sum over many rows


class ResetPolicy(StrEnum):
    """The treatment of the data between rounds."""

    KEEP = "keep"  # read-only workloads
    RESTORE = "restore"  # back to the snapshot before every round


@dataclass(frozen=True)
class Cell:
    """The place of a workload in a grid: its load, its amount of data, its level.

    The level is the number of parallel workers if that is varied, else of clients. ``executions`` is the
    number of executions, in a loop, per transaction; the rate counts executions.
    """

    load: str  # the bundled workload that runs at this size
    database_bytes: int
    clients: int
    workers: int | None = None
    executions: int = 1

    @property
    def level(self) -> int:
        """The number that is varied: of workers or of clients."""
        return self.clients if self.workers is None else self.workers

    @property
    def unit(self) -> str:
        """The unit of a level."""
        return "clients" if self.workers is None else "workers"

    @property
    def operation(self) -> str | None:
        """The unit of the rate, if not transactions."""
        return None if self.executions == 1 else "executions"


@dataclass(frozen=True)
class DataSet:
    """Named, reproducible rows. Two workloads with equal data sets share one loaded copy.

    ``bytes_per_scale`` is the size on disk per unit of ``scale``, measured once per data set. ``maker``
    creates the rows: pgdyno-driver, tpchgen, or pg_restore from ``dump``. ``has_loops``: servers started on a
    copy get the functions of pgdyno_loop; the rows are the same. ``rows`` describes the rows of a copy that
    does not have all rows of the original.
    """

    name: str
    scale: int
    bytes_per_scale: int
    options: Mapping[str, str] = field(default_factory=dict)
    has_loops: bool = False
    maker: str = DRIVER
    dump: str | None = None
    rows: str | None = None

    @property
    def size_bytes(self) -> int:
        """The approximate size on disk."""
        return self.scale * self.bytes_per_scale

    @property
    def schemas(self) -> int:
        """The number of schemas with separate tables, one per client; 0: all clients share one schema."""
        return int(self.options.get(SCHEMAS, 0))

    @property
    def is_empty(self) -> bool:
        """Whether it is a database without tables: the workload creates them."""
        return self.bytes_per_scale == 0

    @property
    def key(self) -> str:
        """A file name for this data set: equal keys mean equal rows."""
        options = "".join(f"-{key}{value}" for key, value in sorted(self.options.items()))
        return f"{self.name}{options}-{self.scale}"


EMPTY = DataSet("empty", 1, 0)


@dataclass(frozen=True)
class Script:
    """A pgbench script: a built-in by name, or a user's file, with its weight."""

    name: str
    weight: int = 1
    file: str | None = None

    @property
    def option(self) -> str:
        """The pgbench option that selects this script."""
        return f"--file={self.file}@{self.weight}" if self.file else f"--builtin={self.name}@{self.weight}"


@dataclass(frozen=True)
class PgbenchScripts:
    """Scripts of pgbench; pgdyno-driver implements the built-in ones as well."""

    scripts: tuple[Script, ...]

    @property
    def generators(self) -> tuple[str, ...]:
        """The load generators that can issue it."""
        return ("pgbench",) if any(script.file for script in self.scripts) else (DRIVER, "pgbench")


@dataclass(frozen=True)
class SysbenchScript:
    """A Lua script shipped with sysbench, by name; pgdyno-driver implements it as well."""

    lua_script: str
    generators: ClassVar[tuple[str, ...]] = (DRIVER, "sysbench")


@dataclass(frozen=True)
class DriverScript:
    """Transactions that only pgdyno-driver implements."""

    generators: ClassVar[tuple[str, ...]] = (DRIVER,)


@dataclass(frozen=True)
class Statement:
    """Each transaction is this one statement (SQL), and may take as long as a block.

    ``workers`` is the requested number of parallel workers; EXPLAIN shows those of a query, but not those of
    a statement that ``builds_index``. ``is_rolled_back``: each transaction is rolled back, so the statement
    may write. ``executions`` is the number of executions per transaction, in a loop inside the server:
    throughput and metered quantities are per execution.
    """

    sql: str
    workers: int | None = None
    builds_index: bool = False
    is_rolled_back: bool = False
    executions: int = 1
    generators: ClassVar[tuple[str, ...]] = (DRIVER,)


@dataclass(frozen=True)
class Step:
    """A step of a longer workload: it works on the data left by the previous step.

    ``name`` is that of its workload, also in the driver. ``operations`` is the counted unit: "rows" inserted,
    or "queries". ``label`` describes how the whole is run, by mode and size; experiments record it, and can
    be continued only with the same label. ``preceded_by`` are steps to run before, unmeasured, because their
    results were not requested. ``settle_s`` is the time from the beginning of the clean-up (vacuum,
    checkpoint) to the start of the step; None: no clean-up.
    """

    name: str
    options: Mapping[str, object]  # for the driver
    clients: int
    operations: str
    rows_per_commit: int
    label: str = ""
    preceded_by: tuple[Step, ...] = ()
    duration_s: float | None = None  # None: it ends when its rows are inserted
    target_rows_per_s: float | None = None  # of all clients; None: as many as possible
    settle_s: float | None = None
    indexed_rows: int | None = None  # rows of all tables, for the step that builds the indexes
    interval_s: float = 1.0
    patience_s: float = 600.0  # longest wait without progress, beyond the planned time: index builds
    generators: ClassVar[tuple[str, ...]] = (DRIVER,)


@dataclass(frozen=True)
class TpchStep:
    """A step of a TPC-H-like pass; ``model/experiments/step_record.py`` has the names.

    ``clients`` is the number of streams of the throughput run. ``label`` describes how the whole is run; an
    experiment can be continued only with the same label.
    """

    name: str
    clients: int
    label: str
    operations: ClassVar[str] = "executions"
    generators: ClassVar[tuple[str, ...]] = (DRIVER,)


@dataclass(frozen=True)
class CapturedLoad:
    """A workload captured from a server, run on a copy of its database."""

    workload: CapturedWorkload
    generators: ClassVar[tuple[str, ...]] = (DRIVER,)


Kind = PgbenchScripts | SysbenchScript | DriverScript | Statement | Step | TpchStep | CapturedLoad
"""The kinds of load. Rounds measure them in blocks; steps follow their benchmark: ``Passes``."""


@dataclass(frozen=True)
class Workload:
    """The transactions to run, and their effect on the data.

    ``invariant`` is a query (SQL) that must return true after every round in which only this workload has
    written, or None. ``server_memory_bytes`` limits the memory of its server's processes, page cache
    included; None: no limit. ``disk_bytes`` is the most disk space that its server takes; None: not much more
    than its data set. ``made_bytes`` is the size of the tables and indexes that it creates; None: it creates
    none. ``clients`` is its number of connections; None: the design's. ``session_settings`` apply to them.
    ``protocol`` is one of ``PROTOCOLS``. ``load`` is the name of a grid's cell without its size and level.
    ``rate_tps`` is the arrival rate in transactions per second over all clients, regardless of running
    transactions (open loop; pgdyno-driver only); None: each client begins the next transaction at once.
    """

    name: str
    title: str
    data_set: DataSet
    reset: ResetPolicy
    kind: Kind = DriverScript()
    generator: str = DRIVER  # one of ``generators``
    invariant: str | None = None
    issued_as: str | None = None  # its name in the driver, if workloads differ only in their data
    server_memory_bytes: int | None = None
    disk_bytes: int | None = None
    made_bytes: int | None = None
    clients: int | None = None
    protocol: str = PREPARED
    load: str | None = None
    rate_tps: float | None = None
    session_settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def step(self) -> Step | TpchStep | None:
        """The step, if it is a step of a longer workload; else None."""
        return self.kind if isinstance(self.kind, Step | TpchStep) else None

    @property
    def statement(self) -> Statement | None:
        """The statement, if each of its transactions is a single one; else None."""
        return self.kind if isinstance(self.kind, Statement) else None

    @property
    def captured(self) -> CapturedWorkload | None:
        """The captured workload, if it is one; else None."""
        return self.kind.workload if isinstance(self.kind, CapturedLoad) else None

    @property
    def cell(self) -> Cell | None:
        """Its place in a grid of data sizes and levels; None if it does not belong to a grid."""
        if self.clients is None:
            return None
        load = self.load or self.issued_as or self.name
        workers = self.statement.workers if self.statement else None
        return Cell(load, self.data_set.size_bytes, self.clients, workers, self.executions)

    @property
    def executions(self) -> int:
        """The number of counted executions per transaction."""
        return self.statement.executions if self.statement else 1

    @property
    def driver_name(self) -> str:
        """Its name in pgdyno-driver."""
        if self.captured:
            return CAPTURED
        return QUERY if self.statement else self.issued_as or self.name

    @property
    def generators(self) -> tuple[str, ...]:
        """The load generators that can issue it: pgdyno-driver, and the original program."""
        return self.kind.generators

    @property
    def is_read_only(self) -> bool:
        """Whether it leaves the data unchanged."""
        return self.reset is ResetPolicy.KEEP


USUAL_CLIENTS = 4


def usual_clients(workloads: Collection[Workload]) -> int:
    """Return the number of clients for workloads: captured ones have as many as were active."""
    captured = [one.captured.clients for one in workloads if one.captured is not None]
    return max(captured) if captured and len(captured) == len(workloads) else USUAL_CLIENTS


def name_on_own_tables(load: str, count: int) -> str:
    """Return the name of a load on separate tables for each of N clients.

    The number of tables determines their size: a load on another number of tables is different work.
    """
    return f"{load}, {count} {_OWN_TABLES}"


def name_on_shared_tables(load: str) -> str | None:
    """Return the name of the same load on shared tables; None if it already uses these."""
    name, _, words = load.rpartition(", ")
    return name if words.endswith(f" {_OWN_TABLES}") else None


def load_name(issuer: str, *words: str) -> str:
    """Return the name of a load: its issuer, and words on its statement and tables."""
    return ", ".join((issuer, *words))


def issuer_and_words(load: str) -> tuple[str, str]:
    """Return the issuer of a load, and the words on its statement and tables; empty: the usual ones."""
    issuer, _, words = load.partition(", ")
    return issuer, words
