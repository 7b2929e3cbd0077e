"""A workload's statements, with their custom and generic plans and how their commits are grouped."""

from __future__ import annotations

from dataclasses import dataclass

ENOUGH_CLIENTS = 8  # arbitrary: fewer seldom commit at the same time


@dataclass(frozen=True)
class CommitGrouping:
    """Counts of a writing workload. Units: ``flush_us`` microseconds, of 8 kB."""

    workload: str
    clients: int
    commits: int
    flushes: int
    flush_us: float

    @property
    def commits_per_flush(self) -> float:
        """Commits that one flush served; all of them if there was none."""
        return self.commits / max(self.flushes, 1)


@dataclass(frozen=True)
class PreparedStatement:
    """A statement that clients prepare by name, with parameters of some of its calls.

    Shapes: ``samples`` has one tuple per call, with one text per parameter. ``parameter_types`` are oids; the
    server infers those that are missing.
    Units: ``calls`` per transaction.
    """

    name: str
    sql: str
    parameter_types: tuple[int, ...]
    samples: tuple[tuple[str, ...], ...]
    calls: float


@dataclass(frozen=True)
class StatementPlan:
    """A statement's plan: its nodes from the top, with the planner's estimates.

    Shapes: ``shape`` and ``rows`` have one entry per node.
    Units: ``cost`` as in EXPLAIN; ``blocks`` of shared memory that an execution read, None if it was not run.
    """

    shape: tuple[str, ...]
    rows: tuple[float, ...]
    cost: float
    blocks: int | None = None


@dataclass(frozen=True)
class PlannedStatement:
    """How a server plans a prepared statement.

    ``customs`` are plans for some of its values, ``generics`` the plan for all, run with the same ones.
    ``is_planned_anew``: left to itself, the server plans each execution. ``is_private``: it is of a user's
    own workload, and its text is not shown. ``execution_ms`` is None for what writes, which is planned and
    not run.
    Units: medians in milliseconds; ``calls`` per transaction.
    """

    name: str
    sql: str
    calls: float
    customs: tuple[StatementPlan, ...]
    generics: tuple[StatementPlan, ...]
    tables: tuple[str, ...]
    has_partitions: bool
    is_planned_anew: bool
    planning_ms: float
    execution_ms: float | None
    is_private: bool = False

    @property
    def shown(self) -> str:
        """The statement as messages name it."""
        return self.name if self.is_private else f'"{self.sql}"'

    @property
    def other_shape(self) -> StatementPlan | None:
        """The first plan for certain values that has other nodes than the plan for all values."""
        shape = self.generics[0].shape
        return next((plan for plan in self.customs if plan.shape != shape), None)

    @property
    def estimate_ratio(self) -> float:
        """The largest factor between row estimates of equal nodes; at least 1."""
        pairs = [
            (max(one, 1.0), max(other, 1.0))
            for plan in self.customs
            for one, other in zip(plan.rows, self.generics[0].rows, strict=False)
        ]
        return max((max(pair) / min(pair) for pair in pairs), default=1.0)

    @property
    def blocks(self) -> tuple[int, int] | None:
        """Blocks read with plans for the values, and with the plan for all; None if it was not run."""
        totals = [sum(plan.blocks or 0 for plan in plans) for plans in (self.customs, self.generics)]
        return None if self.execution_ms is None else (totals[0], totals[1])


@dataclass(frozen=True)
class WorkloadStatements:
    """The prepared statements of one workload, as a server plans them."""

    workload: str
    statements: tuple[PlannedStatement, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its statements; those that differ only in their table share a name."""
        return tuple(dict.fromkeys(one.name for one in self.statements))

    @property
    def planned_anew(self) -> tuple[str, ...]:
        """The names of those that are planned at every execution."""
        return tuple(dict.fromkeys(one.name for one in self.statements if one.is_planned_anew))

    @property
    def planning_share(self) -> float:
        """The part of its reads' time, planning included, in which statements are planned once more."""
        reads = [one for one in self.statements if one.execution_ms is not None]
        planning_ms = sum(one.calls * one.planning_ms for one in reads if one.is_planned_anew)
        total_ms = planning_ms + sum(one.calls * (one.execution_ms or 0.0) for one in reads)
        return planning_ms / total_ms if total_ms else 0.0


@dataclass(frozen=True)
class PlanningShare:
    """Totals of ``pg_stat_statements`` with ``track_planning`` on, of all statements together."""

    plans: int
    calls: int
    planning_ms: float
    execution_ms: float

    @property
    def share(self) -> float:
        """The part of the statements' time that is planning."""
        total_ms = self.planning_ms + self.execution_ms
        return self.planning_ms / total_ms if total_ms else 0.0
