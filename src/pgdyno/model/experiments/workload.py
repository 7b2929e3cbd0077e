"""A workload: its data set, its transactions, and their effect on the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from pgdyno.model.experiments.captured import CapturedWorkload
from pgdyno.model.experiments.experiment import Cell, ResetPolicy

QUERY = "query"  # the driver's workload that executes any one statement
USER_SCRIPTS = "scripts"  # the name of the workload made of a user's own pgbench scripts
DRIVER = "driver"  # our own generator, pgdyno-driver
TPCHGEN = "tpchgen"  # makes TPC-H's rows
DUMP = "pg_restore"  # restores a copy of a user's database
CAPTURED = "captured"  # the driver's workload that a captured one is issued by
PROTOCOLS = ("simple", "extended", "prepared")  # how statements travel, as pgbench calls it
PREPARED = PROTOCOLS[-1]
SCHEMAS = "schemas"  # the option of a data set whose clients have tables of their own
_WORDS = "own tables"
SCHEMA = "pgdyno_loop"  # of the functions, in databases that have them
CLIENT = "client"
C_LOOP = "C loop"
PLPGSQL_LOOP = "PL/pgSQL loop"
CURVES = (CLIENT, C_LOOP, PLPGSQL_LOOP)  # by numbers of clients
EMPTY_LOOP = "empty loop"  # of the loop in C
ONE_QUERY = "one query"  # that has all the rows, so that the executor starts once
BESIDE = (EMPTY_LOOP, ONE_QUERY)  # at one client, for comparison
AGGREGATE = "aggregate"  # each execution is a sum over many rows


@dataclass(frozen=True)
class DataSet:
    """Named, reproducible rows. Two workloads with equal data sets share one loaded copy.

    ``bytes_per_scale`` is the size on disk per unit of ``scale``, measured once per data set. ``maker`` makes
    the rows: our driver, tpchgen, or pg_restore from ``dump``. ``has_loops``: whether servers that start on a
    copy of it get the functions of pgdyno_loop; its rows are the same. ``rows`` of a copy says what they are,
    where they are not all of the original's.
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
        """The number of schemas with all its tables, one for each client; 0: all clients share one."""
        return int(self.options.get(SCHEMAS, 0))

    @property
    def is_empty(self) -> bool:
        """Whether it is a database without tables: the workload makes its own."""
        return self.bytes_per_scale == 0

    @property
    def key(self) -> str:
        """A file name for this data set: equal keys hold equal rows."""
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
    """Scripts of pgbench; our driver has the built-in ones as well."""

    scripts: tuple[Script, ...]

    @property
    def generators(self) -> tuple[str, ...]:
        """Who can issue it."""
        return ("pgbench",) if any(script.file for script in self.scripts) else (DRIVER, "pgbench")


@dataclass(frozen=True)
class SysbenchScript:
    """A Lua script that comes with sysbench, by name; our driver has it as well."""

    lua_script: str
    generators: ClassVar[tuple[str, ...]] = (DRIVER, "sysbench")


@dataclass(frozen=True)
class DriverScript:
    """Transactions that only our driver has."""

    generators: ClassVar[tuple[str, ...]] = (DRIVER,)


@dataclass(frozen=True)
class Statement:
    """Each transaction is this one statement (SQL), and may take as long as a block.

    ``workers`` is how many parallel workers it is to have; EXPLAIN shows those of a query, and none of a
    statement that ``builds_index``. ``is_rolled_back``: whether each transaction is, so that the statement
    may write. ``executions`` is how often a transaction executes what is measured, in a loop inside the
    server: throughput and what is metered are of one execution.
    """

    sql: str
    workers: int | None = None
    builds_index: bool = False
    is_rolled_back: bool = False
    executions: int = 1
    generators: ClassVar[tuple[str, ...]] = (DRIVER,)


@dataclass(frozen=True)
class Step:
    """A step of a longer workload: it works on the data that the step before has left.

    ``name`` is its workload's, and what the driver calls it. ``operations`` names what is counted: "rows"
    inserted, or "queries". ``label`` says how the whole is run:
    its mode and its size; experiments note it, and only an equal one continues them. ``preceded_by`` are the
    steps to run before, unmeasured, where their results were not asked for. ``settle_s`` is the time from
    the beginning of the clean-up (vacuum, checkpoint) until the step starts; None: there is no clean-up.
    """

    name: str
    options: Mapping[str, object]  # the driver's
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
    patience_s: float = 600.0  # bound on waiting for a sign of life, beyond its planned time: index builds
    generators: ClassVar[tuple[str, ...]] = (DRIVER,)


@dataclass(frozen=True)
class TpchStep:
    """A step of a TPC-H-like pass; ``model/experiments/tpch.py`` has its names.

    ``clients`` are the streams of the throughput run. ``label`` says how the whole is run; only an equal one
    continues an experiment.
    """

    name: str
    clients: int
    label: str
    operations: ClassVar[str] = "executions"
    generators: ClassVar[tuple[str, ...]] = (DRIVER,)


@dataclass(frozen=True)
class CapturedLoad:
    """A workload that was captured from a server, on a copy of its database."""

    workload: CapturedWorkload
    generators: ClassVar[tuple[str, ...]] = (DRIVER,)


Kind = PgbenchScripts | SysbenchScript | DriverScript | Statement | Step | TpchStep | CapturedLoad
"""What is run. Rounds measure it in blocks, steps as their benchmark does: ``measure/passes.py``."""


@dataclass(frozen=True)
class Workload:
    """The transactions to run, and their effect on the data.

    ``invariant`` is a query (SQL) that must return true after every round in which only this workload has
    written, or None. ``server_memory_bytes`` limits what its server's processes may use, page cache included;
    None: no limit. ``disk_bytes`` is what its server takes on disk at most; None: not much more than its data
    set. ``made_bytes`` is the size of the tables and indexes that it makes itself; None: it makes none.
    ``clients`` are its connections; None: the design's. ``session_settings`` are theirs. ``protocol`` is one
    of ``PROTOCOLS``. ``load`` is what a cell of a grid is called without its size and level.
    ``rate_tps`` is how many transactions arrive per second over all clients, however long earlier ones take
    (open loop; the driver alone can); None: each client begins the next one at once.
    """

    name: str
    title: str
    data_set: DataSet
    reset: ResetPolicy
    kind: Kind = DriverScript()
    generator: str = DRIVER  # one of ``generators``
    invariant: str | None = None
    issued_as: str | None = None  # the driver's name of it, where workloads differ in their data alone
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
        """The step of a longer one that it is; None if it is none."""
        return self.kind if isinstance(self.kind, Step | TpchStep) else None

    @property
    def statement(self) -> Statement | None:
        """The one statement that each of its transactions is; None if it is another kind."""
        return self.kind if isinstance(self.kind, Statement) else None

    @property
    def captured(self) -> CapturedWorkload | None:
        """The captured workload that it is; None if it is another kind."""
        return self.kind.workload if isinstance(self.kind, CapturedLoad) else None

    @property
    def cell(self) -> Cell | None:
        """Where it stands in a grid of data sizes and levels; None if it belongs to none."""
        if self.clients is None:
            return None
        load = self.load or self.issued_as or self.name
        workers = self.statement.workers if self.statement else None
        return Cell(load, self.data_set.size_bytes, self.clients, workers, self.executions)

    @property
    def executions(self) -> int:
        """How often a transaction executes the operation that its rate counts."""
        return self.statement.executions if self.statement else 1

    @property
    def driver_name(self) -> str:
        """Its name in our driver."""
        if self.captured:
            return CAPTURED
        return QUERY if self.statement else self.issued_as or self.name

    @property
    def generators(self) -> tuple[str, ...]:
        """Who can issue it: our driver, and the program that it comes from."""
        return self.kind.generators

    @property
    def is_read_only(self) -> bool:
        """Whether running it leaves the data as it was."""
        return self.reset is ResetPolicy.KEEP


def name_on_own_tables(load: str, count: int) -> str:
    """Return the name of a load on N clients' own tables.

    The number of tables decides how many rows each has: loads on other numbers are other work.
    """
    return f"{load}, {count} {_WORDS}"


def name_on_shared_tables(load: str) -> str | None:
    """Return the name of the same load on shared tables; None for one that is on them itself."""
    name, _, words = load.rpartition(", ")
    return name if words.endswith(f" {_WORDS}") else None


def load_name(issuer: str, *words: str) -> str:
    """Return the name of a load: its issuer, and words on its statement and tables."""
    return ", ".join((issuer, *words))


def issuer_and_words(load: str) -> tuple[str, str]:
    """Return the issuer of a load, and the words on its statement and tables; none: the usual ones."""
    issuer, _, words = load.partition(", ")
    return issuer, words
