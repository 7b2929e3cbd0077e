"""How a scratch server plans the statements of its workloads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median

from pgdyno.base.errors import PgdynoError
from pgdyno.base.facts import Fact, Unknown, unknown
from pgdyno.load.driver import Driver, job_options, prepared_statements
from pgdyno.model.experiments.workload import DRIVER, PREPARED, Workload
from pgdyno.postgres.connection.connection import Connection
from pgdyno.postgres.plan_document import join_order, plan_of, shape
from pgdyno.postgres.planner.sql_text import first_word
from pgdyno.postgres.sampling.prepared_plans import Document, explain_prepared
from pgdyno.postgres.statements import PlannedStatement, PreparedStatement, StatementPlan, WorkloadStatements

SOURCE = "EXPLAIN EXECUTE with force_custom_plan and force_generic_plan"
"""Source of the facts in this module."""

_READS = frozenset({"select", "values", "table", "with"})
_NOT_PLANNED = frozenset({"begin", "start", "commit", "end", "rollback", "abort"})


def plan_workload(
    connection: Connection, workload: Workload, find_driver: Callable[[], Driver]
) -> Fact[WorkloadStatements]:
    """Plan the statements of a workload on its data; unknown, with the reason, if they are not available."""
    if (obstacle := _obstacle(workload)) is not None:
        return unknown(obstacle, SOURCE)
    try:
        statements = [
            one
            for one in prepared_statements(find_driver(), workload, job_options(workload))
            if first_word(one.sql) not in _NOT_PLANNED
        ]
        planned = tuple(
            plan_statement(connection, one, is_run=first_word(one.sql) in _READS) for one in statements
        )
    except PgdynoError as error:
        reason = f"{error.message}: {error.detail}" if error.detail else error.message
        return unknown(reason, SOURCE)
    return Fact(WorkloadStatements(workload.name, planned), SOURCE)


def together(found: Sequence[Fact[WorkloadStatements]]) -> Fact[tuple[WorkloadStatements, ...]]:
    """Return the statements of all workloads; unknown if those of any workload are."""
    known: list[WorkloadStatements] = []
    for fact in found:
        if isinstance(fact.value, Unknown):
            return Fact(fact.value, fact.source)
        known.append(fact.value)
    return Fact(tuple(known), SOURCE)


def plan_statement(connection: Connection, statement: PreparedStatement, *, is_run: bool) -> PlannedStatement:
    """Plan one statement, and run it if ``is_run``. Raises: ServerError if the server rejects it."""
    found = explain_prepared(connection, statement, is_run=is_run)
    generic = plan_of(found.generics[0]["Plan"])
    return PlannedStatement(
        name=statement.name,
        sql=statement.sql.strip(),
        calls=statement.calls,
        customs=tuple(map(_plan, found.customs)),
        generics=tuple(map(_plan, found.generics)),
        tables=tuple(sorted(set(join_order(generic)))),
        has_partitions=found.has_partitions,
        is_planned_anew=not found.is_kept,
        planning_ms=median(one["Planning Time"] for one in found.customs),
        execution_ms=median(one["Execution Time"] for one in found.customs) if is_run else None,
    )


def _obstacle(workload: Workload) -> str | None:
    """Return why the statements are not available, or not prepared by name; None if they are both."""
    if workload.step:
        return f'the statements of workload "{workload.name}" change from step to step'
    if DRIVER not in workload.generators:
        return f'the statements of workload "{workload.name}" are in scripts, which pgdyno does not read'
    if workload.protocol != PREPARED:
        return f'workload "{workload.name}" does not prepare its statements by name'
    return None


def _plan(document: Document) -> StatementPlan:
    node = plan_of(document["Plan"])
    blocks = [document["Plan"].get(key) for key in ("Shared Hit Blocks", "Shared Read Blocks")]
    return StatementPlan(
        shape=shape(node),
        rows=tuple(one.rows for _, one in node.walk()),
        cost=float(document["Plan"]["Total Cost"]),
        blocks=None if None in blocks else sum(blocks),
    )
