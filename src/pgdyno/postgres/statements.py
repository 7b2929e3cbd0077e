"""A workload's statements with their custom and generic plans, and the grouping of its commits."""

from __future__ import annotations

from dataclasses import dataclass

ENOUGH_CLIENTS = 8  # arbitrary: fewer clients rarely commit at the same time


@dataclass(frozen=True)
class CommitGrouping:
    """Commit and flush counts of a writing workload. Units: ``flush_us`` microseconds per 8 kB flush."""

    workload: str
    clients: int
    commits: int
    flushes: int
    flush_us: float

    @property
    def commits_per_flush(self) -> float:
        """Commits per flush; all commits if there was no flush."""
        return self.commits / max(self.flushes, 1)


@dataclass(frozen=True)
class PreparedStatement:
    """A named prepared statement, with the parameters of some of its calls.

    Shapes: ``samples`` has one tuple per call, with one text per parameter. ``parameter_types`` are OIDs; the
    server infers missing ones.
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
    Units: ``cost`` as in EXPLAIN; ``blocks`` are shared buffers accessed by an execution, None if not run.
    """

    shape: tuple[str, ...]
    rows: tuple[float, ...]
    cost: float
    blocks: int | None = None


@dataclass(frozen=True)
class PlannedStatement:
    """The plans of a prepared statement on a server.

    ``customs`` are its custom plans for some parameter values; ``generics`` is its generic plan, run with
    the same values. ``is_planned_anew``: with plan_cache_mode = auto, the server plans every execution.
    ``is_private``: it belongs to a user's own workload, and its text is not shown. ``execution_ms`` is None
    for statements that write: these are planned but not run.
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
        """The statement's name or text, as shown in messages."""
        return self.name if self.is_private else f'"{self.sql}"'

    @property
    def other_shape(self) -> StatementPlan | None:
        """The first custom plan with different nodes than the generic plan; None if there is none."""
        shape = self.generics[0].shape
        return next((plan for plan in self.customs if plan.shape != shape), None)

    @property
    def estimate_ratio(self) -> float:
        """The largest ratio between a custom and the generic plan's row estimates per node; at least 1."""
        pairs = [
            (max(one, 1.0), max(other, 1.0))
            for plan in self.customs
            for one, other in zip(plan.rows, self.generics[0].rows, strict=False)
        ]
        return max((max(pair) / min(pair) for pair in pairs), default=1.0)

    @property
    def blocks(self) -> tuple[int, int] | None:
        """Blocks accessed with the custom plans and with the generic plan; None if it was not run."""
        totals = [sum(plan.blocks or 0 for plan in plans) for plans in (self.customs, self.generics)]
        return None if self.execution_ms is None else (totals[0], totals[1])


@dataclass(frozen=True)
class WorkloadStatements:
    """The prepared statements of one workload with their plans on a server."""

    workload: str
    statements: tuple[PlannedStatement, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The distinct names of its statements; statements that differ only in the table share a name."""
        return tuple(dict.fromkeys(one.name for one in self.statements))

    @property
    def planned_anew(self) -> tuple[str, ...]:
        """The distinct names of statements that are planned at every execution."""
        return tuple(dict.fromkeys(one.name for one in self.statements if one.is_planned_anew))

    @property
    def planning_share(self) -> float:
        """The fraction of its reads' time, planning included, spent on repeated planning."""
        reads = [one for one in self.statements if one.execution_ms is not None]
        planning_ms = sum(one.calls * one.planning_ms for one in reads if one.is_planned_anew)
        total_ms = planning_ms + sum(one.calls * (one.execution_ms or 0.0) for one in reads)
        return planning_ms / total_ms if total_ms else 0.0


@dataclass(frozen=True)
class PlanningShare:
    """Totals over all statements in ``pg_stat_statements``, with ``track_planning`` on."""

    plans: int
    calls: int
    planning_ms: float
    execution_ms: float

    @property
    def share(self) -> float:
        """The fraction of the statements' time that is planning."""
        total_ms = self.planning_ms + self.execution_ms
        return self.planning_ms / total_ms if total_ms else 0.0
