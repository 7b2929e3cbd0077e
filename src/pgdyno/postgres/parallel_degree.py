"""The number of workers that PostgreSQL plans for a query, and the limit that decided it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pgdyno.base.facts import Fact

MAX_WORKERS = 1024  # of a Gather, and of a table: MAX_PARALLEL_WORKER_LIMIT in worker_internal.h


class Limit(StrEnum):
    """Limits that can decide the degree. The first ten are configurable numbers."""

    CAP = "max_parallel_workers_per_gather"
    RELOPTION = "parallel_workers"
    TABLE_SIZE = "min_parallel_table_scan_size"
    INDEX_SIZE = "min_parallel_index_scan_size"
    CHILDREN = "enable_parallel_append"  # a Parallel Append takes more workers than its children would
    SETUP_COST = "parallel_setup_cost"
    TUPLE_COST = "parallel_tuple_cost"
    DEBUG = "debug_parallel_query"  # force_parallel_mode before 16
    POOL = "max_parallel_workers"
    PROCESSES = "max_worker_processes"
    SERIAL_IS_CHEAPER = "cost"  # even if starting workers and transferring rows were free
    UNSAFE_FUNCTION = "parallel-unsafe function"
    RESTRICTED_FUNCTION = "parallel-restricted function"
    ROW_LOCKS = "row locks"
    WRITES = "data-modifying CTE"
    TEMPORARY_TABLE = "temporary table"
    FOREIGN_TABLE = "foreign table"
    KIND_OF_SCAN = "kind of scan"
    NO_TABLE = "no table"
    NOT_FOUND_OUT = "not found out"


@dataclass(frozen=True)
class Scan:
    """A scan in a plan. ``index`` None: not an index scan. ``name`` is the node type as EXPLAIN prints it."""

    name: str
    schema: str
    table: str
    alias: str
    index: str | None = None

    @property
    def relation(self) -> str:
        """The table's schema-qualified name, unquoted."""
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True)
class Gather:
    """A node that starts workers.

    ``scans`` are the parallel scans that determine the number of workers: one, or the children of an Append.
    ``is_single_copy``: one worker runs the whole subplan; only ``debug_parallel_query`` causes this.
    """

    name: str
    workers: int
    scans: tuple[Scan, ...]
    rows: int
    is_append: bool = False
    is_single_copy: bool = False


@dataclass(frozen=True)
class Table:
    """Table properties that affect the degree. ``parallel_workers`` None: the parameter is not set."""

    name: str  # schema-qualified, quoted where SQL requires it
    is_system: bool  # in a system schema: its storage parameters are not to be changed
    kind: str  # pg_class.relkind: r, p, m, f, …
    is_temporary: bool
    pages: int
    parallel_workers: int | None


@dataclass(frozen=True)
class SizeRule:
    """The size rule applied to one scan: one worker from ``threshold`` pages, one more per tripling."""

    setting: Limit
    pages: int | None  # None: the planner's estimate for this scan, which EXPLAIN does not show
    threshold: int
    workers: int  # by size, before any cap

    @property
    def from_pages(self) -> int:
        """The size in pages from which ``workers`` workers are planned; 0 for no workers."""
        return self.next_pages // 3 if self.workers else 0

    @property
    def next_pages(self) -> int:
        """The size in pages from which one more worker is planned."""
        return max(self.threshold, 1) * int(3**self.workers)


@dataclass(frozen=True)
class Hazard:
    """Functions that are not parallel safe and that the query calls by name or through an operator."""

    called_as: str  # the function name or the operator
    functions: tuple[str, ...]  # with their argument types: public.f(integer)
    is_unsafe: bool  # parallel unsafe; otherwise parallel restricted
    is_builtin: bool
    is_certain: bool  # all overloads of this name have the label, whichever one the arguments select


@dataclass(frozen=True)
class Cause:
    """A limit that decided the degree, with its reason and its remedy."""

    limit: Limit
    what: str  # the limit with its value, short enough for a heading: "parallel_workers = 4 of public.t"
    why: str
    remedy: str | None
    table: str | None = None  # the table with this storage parameter or relkind


@dataclass(frozen=True)
class ExplainedGather:
    """A Gather with the limits that decided its number of workers."""

    gather: Gather
    tables: tuple[Table, ...]  # scanned below the Gather
    causes: tuple[Cause, ...]
    size_rule: SizeRule | None
    uncapped_workers: int | None  # without max_parallel_workers_per_gather; None: the plan changes then


@dataclass(frozen=True)
class Pools:
    """Size and use of the two worker pools that a query draws from."""

    max_parallel_workers: int
    max_worker_processes: int
    parallel_in_use: Fact[int]
    others_in_use: Fact[int]  # other background workers: replication, extensions

    @property
    def narrower(self) -> Limit:
        """The pool with fewer free workers; unknown use counts as 0."""
        left = self.max_parallel_workers - self.parallel_in_use.or_else(0)
        slots = self.max_worker_processes - self.parallel_in_use.or_else(0) - self.others_in_use.or_else(0)
        return Limit.POOL if left <= slots else Limit.PROCESSES

    def launchable(self, workers: int) -> int | None:
        """Return how many of ``workers`` can be started now; None if the number in use is unknown."""
        parallel, others = self.parallel_in_use.or_none(), self.others_in_use.or_none()
        if parallel is None or others is None:
            return None
        free = min(self.max_parallel_workers - parallel, self.max_worker_processes - parallel - others)
        return max(0, min(workers, free))


@dataclass(frozen=True)
class DegreeStep:
    """One recommended statement. ``is_tried``: EXPLAIN confirmed its effect, or that of an equivalent."""

    statement: str
    note: str
    is_tried: bool
    needs_restart: bool = False


@dataclass(frozen=True)
class DegreeAdvice:
    """Statements after which a given number of workers is planned and can be launched.

    ``obstacle``: why no statement achieves it; ``steps`` is empty then. ``is_certain``: PostgreSQL's rules
    exclude it; otherwise no statement was found. ``tried_workers``: the workers that EXPLAIN plans with all
    steps that could be tried; None if none could.
    """

    workers: int
    steps: tuple[DegreeStep, ...]
    tried_workers: int | None
    obstacle: str | None = None
    is_certain: bool = True


@dataclass(frozen=True)
class Degree:
    """The workers planned for a query, the limit that decided them, and remedies.

    ``causes`` decided jointly; removing any one of ``alternatives`` instead would suffice.
    """

    version: str
    planned: int
    gathers: tuple[ExplainedGather, ...]
    causes: tuple[Cause, ...]
    alternatives: tuple[Cause, ...]
    tables: tuple[Table, ...]
    settings: Mapping[str, str]
    pools: Pools
    launchable: int | None  # of the planned workers, at query time; None: unknown
    pool_limit: Limit | None  # the pool that is too small to launch all; None: all can start, or unknown
    notes: tuple[str, ...]
    advice: DegreeAdvice | None = None


@dataclass(frozen=True)
class StatementDegree:
    """The degree of a workload's statement; ``share`` is its share of the workload's time or calls.

    ``degree`` None: not determined, for the reason ``why_none``. ``is_never``: it has none on any server.
    """

    statement: str
    share: float
    degree: Degree | None = None
    why_none: str | None = None
    is_never: bool = False
