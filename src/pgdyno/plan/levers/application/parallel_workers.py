"""Parallel workers: raised to the number of CPUs.

What it does:
    Raises max_worker_processes and max_parallel_workers to the number of CPUs, and
    max_parallel_maintenance_workers to half of it, at most 4. The degree of a single query
    (max_parallel_workers_per_gather) is unchanged: transaction processing is parallel through its
    connections.

Why it helps:
    With the defaults (8, 8, 2) a machine with 32 CPUs cannot give more than 8 of them to large queries,
    and builds an index with 3.

When it hurts:
    Each worker may use its own work_mem; the memory proof counts them. A standby needs at least as many
    worker processes as its primary.

How it is verified:
    pg_settings of the running server.

How it is undone:
    The values found are restored; max_worker_processes requires a restart.

Evidence:
    The manual's definitions; pgtune and timescaledb-tune use the number of CPUs too. Never lowered: with few
    CPUs the defaults cost nothing while no query is parallel.

References:
    https://www.postgresql.org/docs/current/runtime-config-resource.html#RUNTIME-CONFIG-RESOURCE-WORKER-PROCESSES
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, Need, PlanContext, PlanLine, Planned, Risk

MAINTENANCE_CAP = 4  # pgtune's cap; storage soon limits an index build

LEVER = Lever(
    name="parallel_workers",
    title="parallel workers matched to the CPUs",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    settings=("max_worker_processes", "max_parallel_workers", "max_parallel_maintenance_workers"),
    needs=(Need.CPUS, Need.MEMORY),
    moves_with={"max_parallel_workers": "max_worker_processes"},
)


def plan(ctx: PlanContext) -> Planned:
    """Raise the values below the number of CPUs; lower none."""
    cpus = int(ctx.cpu_count)
    wanted = {
        "max_worker_processes": cpus,
        "max_parallel_workers": cpus,
        "max_parallel_maintenance_workers": min(cpus // 2, MAINTENANCE_CAP),
    }
    lines = [_raised(ctx, name, count, cpus) for name, count in wanted.items()]
    return LEVER.planned(lines, f"the present limits suffice for {cpus} CPUs")


def _raised(ctx: PlanContext, name: str, count: int, cpus: int) -> PlanLine | None:
    if count <= ctx.settings.number(name):
        return None
    return LEVER.propose(
        ctx,
        name,
        str(count),
        reason=f"{cpus} CPUs, but only {ctx.settings.text(name)} workers are allowed",
        evidence='PostgreSQL manual, "Worker Processes"; pgtune and timescaledb-tune use the same rule',
    )
