"""How many workers PostgreSQL plans for a query, and which limit decided it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from pgdyno.base.facts import Fact

MAX_WORKERS = 1024  # of a Gather, and of a table: MAX_PARALLEL_WORKER_LIMIT in worker_internal.h


class Limit(StrEnum):
    """Limits that can decide the degree. The first ten are numbers that can be set."""

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
    SERIAL_IS_CHEAPER = "cost"  # even if starting workers and passing on rows were free
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
    """A scan in a plan. ``index`` None: it is not by an index. ``name`` is the node's, as EXPLAIN has it."""

    name: str
    schema: str
    table: str
    alias: str
    index: str | None = None

    @property
    def relation(self) -> str:
        """The table's name with its schema, for people."""
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True)
class Gather:
    """A node that starts workers.

    ``scans`` are those whose pages the workers share and whose size gives their number: one, or the children
    of an Append. ``is_single_copy``: one worker does it all, which ``debug_parallel_query`` alone asks for.
    """

    name: str
    workers: int
    scans: tuple[Scan, ...]
    rows: int
    is_append: bool = False
    is_single_copy: bool = False


@dataclass(frozen=True)
class Table:
    """A table's facts for the degree. ``parallel_workers`` None: the option is not set on it."""

    name: str  # quoted where SQL needs that, with the schema
    is_system: bool  # whose options nobody changes
    kind: str  # as pg_class.relkind: r, p, m, f, …
    is_temporary: bool
    pages: int
    parallel_workers: int | None


@dataclass(frozen=True)
class SizeRule:
    """The rule of the size with one scan's numbers: a worker from ``threshold``, one more per tripling."""

    setting: Limit
    pages: int | None  # None: the planner's estimate of what the scan reads, which EXPLAIN does not show
    threshold: int
    workers: int  # that the size gives, before any cap

    @property
    def from_pages(self) -> int:
        """The pages from which on there are N workers; 0 for no workers."""
        return self.next_pages // 3 if self.workers else 0

    @property
    def next_pages(self) -> int:
        """The pages from which on there is one more."""
        return max(self.threshold, 1) * int(3**self.workers)


@dataclass(frozen=True)
class Hazard:
    """Functions that are not safe for workers and named in the query, or stand behind an operator in it."""

    called_as: str  # the functions' name or the operator
    functions: tuple[str, ...]  # with their arguments: public.f(integer)
    is_unsafe: bool  # otherwise restricted to the leader
    is_builtin: bool
    is_certain: bool  # whether all functions of this name are so, whichever the arguments choose


@dataclass(frozen=True)
class Cause:
    """A limit that decided the degree, with its reason and its remedy."""

    limit: Limit
    what: str  # the limit with its value, as short as a heading: "parallel_workers = 4 of public.t"
    why: str
    remedy: str | None
    table: str | None = None  # whose option or kind it is


@dataclass(frozen=True)
class ExplainedGather:
    """A Gather with the limits that decided its number of workers."""

    gather: Gather
    tables: tuple[Table, ...]  # of its scans
    causes: tuple[Cause, ...]
    size_rule: SizeRule | None
    uncapped_workers: int | None  # without max_parallel_workers_per_gather; None: another plan is chosen then


@dataclass(frozen=True)
class Pools:
    """Free workers in the two pools that a query takes them from."""

    max_parallel_workers: int
    max_worker_processes: int
    parallel_in_use: Fact[int]
    others_in_use: Fact[int]  # background workers of other kinds: replication, extensions

    @property
    def narrower(self) -> Limit:
        """Which of the two pools has less left, as far as is known."""
        left = self.max_parallel_workers - self.parallel_in_use.or_else(0)
        slots = self.max_worker_processes - self.parallel_in_use.or_else(0) - self.others_in_use.or_else(0)
        return Limit.POOL if left <= slots else Limit.PROCESSES

    def launchable(self, workers: int) -> int | None:
        """Return how many of N workers can be started now; None: the number in use is unknown."""
        parallel, others = self.parallel_in_use.or_none(), self.others_in_use.or_none()
        if parallel is None or others is None:
            return None
        free = min(self.max_parallel_workers - parallel, self.max_worker_processes - parallel - others)
        return max(0, min(workers, free))


@dataclass(frozen=True)
class DegreeStep:
    """One statement of an advice. ``is_tried``: EXPLAIN confirmed it, or an equivalent."""

    statement: str
    note: str
    is_tried: bool
    needs_restart: bool = False


@dataclass(frozen=True)
class DegreeAdvice:
    """The statements after which a number of workers is planned and can be launched.

    ``obstacle``: why no statement leads there; ``steps`` is empty then. ``is_certain``: PostgreSQL's rules
    say that none can; otherwise none was found. ``tried_workers``: what EXPLAIN plans with all that could be
    tried; None: nothing could.
    """

    workers: int
    steps: tuple[DegreeStep, ...]
    tried_workers: int | None
    obstacle: str | None = None
    is_certain: bool = True


@dataclass(frozen=True)
class Degree:
    """The workers planned for a query, the limit that decided them, and remedies.

    ``causes`` decided together; each of ``alternatives`` would do by itself in place of the one cause.
    """

    version: str
    planned: int
    gathers: tuple[ExplainedGather, ...]
    causes: tuple[Cause, ...]
    alternatives: tuple[Cause, ...]
    tables: tuple[Table, ...]
    settings: Mapping[str, str]
    pools: Pools
    launchable: int | None  # of the planned ones, at the moment of asking; None: not known
    pool_limit: Limit | None  # the pool by which fewer can be launched; None: all can, or not known
    notes: tuple[str, ...]
    advice: DegreeAdvice | None = None


@dataclass(frozen=True)
class StatementDegree:
    """The degree of a workload's statement, which has a ``share`` of the workload's time, or of its calls.

    ``degree`` None: it has none, for the reason ``why_none``; ``is_never``: none on any server.
    """

    statement: str
    share: float
    degree: Degree | None = None
    why_none: str | None = None
    is_never: bool = False
