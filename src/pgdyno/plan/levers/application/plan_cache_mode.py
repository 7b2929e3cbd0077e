"""plan_cache_mode: generic plans for prepared statements with considerable planning time.

What it does:
    On a scratch server, sets plan_cache_mode to force_generic_plan if the statements of all workloads are
    known, prepared by name, and safe with a generic plan. On a running server it changes nothing, but
    explains how to try this for a role or a database.

Why it helps:
    PostgreSQL uses custom plans, made at every execution, while it estimates a higher cost for the generic
    plan. For `id BETWEEN $1 AND $2` without known bounds it expects 0.5 % of the rows. The generic plan then
    seems more expensive than it is, although the plan is the same.

When it hurts:
    If the best plan depends on the values: skewed columns, partition pruning by value, LIMIT with ORDER BY.
    The generic plan is then far slower. The setting also affects statements in functions, and statements
    that an application adds later.

How it is verified:
    pg_settings of the running server; generic_plans in pg_prepared_statements counts up.

How it is undone:
    The value found is restored; requires a reload. For a role: ALTER ROLE … RESET plan_cache_mode.

Evidence:
    sysbench, duets of 8 rounds, 95 % intervals: throughput +26 % (21 to 32) read-only, +13 % (9.5 to 16.5)
    read-write.

References:
    https://www.postgresql.org/docs/current/runtime-config-query.html#GUC-PLAN-CACHE-MODE
    https://www.postgresql.org/docs/current/sql-prepare.html#SQL-PREPARE-NOTES
    https://www.postgresql.org/docs/current/pgstatstatements.html
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

from pgdyno.base import numbers
from pgdyno.base.facts import Unknown
from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk
from pgdyno.postgres.statements import PlannedStatement, WorkloadStatements

ONE_PLAN = "force_generic_plan"
WORTHWHILE = (
    0.05  # arbitrary: a smaller share of the server's time for reads is hardly measurable as throughput
)
ESTIMATES_DIFFER = 10.0  # arbitrary: if estimates choose joins, they must be roughly right
MORE_BLOCKS = 1.1  # arbitrary

LEVER = Lever(
    name="plan_cache_mode",
    title="generic plans for prepared statements",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    settings=("plan_cache_mode",),
    tried={"plan_cache_mode": ("auto", "force_generic_plan", "force_custom_plan")},
)

_LIMIT, _ORDER = (re.compile(rf"\b{words}\b", re.IGNORECASE) for words in ("limit|fetch", r"order\s+by"))
_TRY = (
    f"try it for one role or database: ALTER ROLE name SET plan_cache_mode = {ONE_PLAN}; "
    "to undo: ALTER ROLE name RESET plan_cache_mode"
)


def plan(ctx: PlanContext) -> Planned:
    """Plan it for known statements; give advice on a running server."""
    if ctx.settings.text("plan_cache_mode") != "auto":
        return LEVER.skip(f"explicitly set to {ctx.settings.text('plan_cache_mode')}")
    if ctx.statements is None:
        return LEVER.skip(_advice(ctx))
    workloads = ctx.statements.value
    if isinstance(workloads, Unknown):
        return LEVER.skip(workloads.reason)
    if (obstacle := _obstacle(workloads)) is not None:
        return LEVER.skip(obstacle)
    line = LEVER.propose(
        ctx,
        "plan_cache_mode",
        ONE_PLAN,
        reason="; ".join(map(_of_workload, workloads)),
        evidence="EXPLAIN EXECUTE here: the generic plan has the same nodes as the custom plans; "
        "sysbench, 8 rounds: +26 % (21 to 32) read-only, +13 % (9.5 to 16.5) read-write",
    )
    return LEVER.planned([line], "already set")


def _advice(ctx: PlanContext) -> str:
    """Return the advice for a server with unknown statements."""
    planning = ctx.server.planning
    if isinstance(planning.value, Unknown):
        return (
            f"the planning time is not known ({planning.value.reason}); "
            "pg_stat_statements.track_planning = on measures it. If statements are prepared by name and "
            f"planning takes {numbers.share(WORTHWHILE)} or more, {_TRY}"
        )
    found = planning.value
    facts = (
        f"planning takes {numbers.share(found.share, 0)} of the statements' time ({found.plans} plans in "
        f"{found.calls} calls, pg_stat_statements)"
    )
    if found.share < WORTHWHILE:
        return f"{facts}: too little to gain"
    return f"{facts}. If the statements are prepared by name, {_TRY}"


def _obstacle(workloads: Sequence[WorkloadStatements]) -> str | None:
    """Return why the generic plan is not safe or not worthwhile; None if it is both."""
    for workload in workloads:
        for statement in workload.statements:
            if (danger := _danger(statement)) is not None:
                return f"{danger}: {statement.shown} of {workload.workload}"
    if not any(workload.planned_anew for workload in workloads):
        return "the server already keeps a generic plan for every prepared statement"
    best = max(workload.planning_share for workload in workloads)
    if best < WORTHWHILE:
        return (
            f"repeated planning takes {numbers.share(best, 1)} of the time of reads, less than "
            f"{numbers.share(WORTHWHILE)}"
        )
    return None


def _danger(statement: PlannedStatement) -> str | None:
    """Return the risk of a generic plan for a statement; None if there is no known one."""
    if statement.has_partitions:
        return "partitions are pruned by value"
    if _LIMIT.search(statement.sql) and _ORDER.search(statement.sql):
        return "LIMIT with ORDER BY needs a custom plan"
    if (other := statement.other_shape) is not None:
        pairs = zip_longest(other.shape, statement.generics[0].shape, fillvalue="nothing more")
        one, all_values = next(pair for pair in pairs if pair[0] != pair[1])
        return f"a custom plan has {one.strip()}, the generic plan {all_values.strip()}"
    # With one table, equal nodes read equal rows; with several, the estimates choose the join order.
    if len(statement.tables) > 1 and statement.estimate_ratio > ESTIMATES_DIFFER:
        return f"row estimates differ by a factor of {statement.estimate_ratio:.0f}"
    if (blocks := statement.blocks) is not None and blocks[1] > MORE_BLOCKS * blocks[0]:
        return f"the generic plan reads {blocks[1]} blocks instead of {blocks[0]}"
    return None


def _of_workload(found: WorkloadStatements) -> str:
    if not found.planned_anew:
        return f"{found.workload}: the server already keeps all generic plans"
    return (
        f"{found.workload}: {len(found.planned_anew)} of {len(found.names)} statements "
        f"({', '.join(found.planned_anew)}) are planned at every execution, which takes "
        f"{numbers.share(found.planning_share, 0)} of the server's time for reads"
    )
