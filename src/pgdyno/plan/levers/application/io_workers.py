"""io_workers: enough I/O workers for all sessions.

What it does:
    Where io_method is worker (18 and later), raises io_workers to a quarter of the CPUs, at most 32.

Why it helps:
    All sessions share the workers. When all are busy, a session reads synchronously, one page after the
    other. On a large machine the default 3 therefore limits read-ahead.

When it hurts:
    Workers beyond what the storage can use are idle processes.

How it is verified:
    pg_settings of the running server, and the number of its processes named "io worker".

How it is undone:
    The value found is restored; requires a reload.

Evidence:
    pgtune uses a quarter of the CPUs; its users have requested a benchmark. Not yet measured by pgdyno.

References:
    https://www.postgresql.org/docs/current/runtime-config-resource.html#GUC-IO-WORKERS
    https://github.com/le0pard/pgtune/issues/118
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, Need, PlanContext, Planned, Risk

CPUS_PER_WORKER = 4
CAP = 32  # the server's maximum

LEVER = Lever(
    name="io_workers",
    title="I/O workers matched to the CPUs",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    settings=("io_workers",),
    needs=(Need.CPUS,),
    order_after={"io_method": "only io_method=worker has I/O workers"},
    tried={"io_workers": ("1", "3", "8")},
)


def plan(ctx: PlanContext) -> Planned:
    """Raise it on large machines."""
    method = ctx.settings.text("io_method")
    if method != "worker":
        return LEVER.skip(f"io_method is {method}, which has no workers")
    found = ctx.settings.text("io_workers")
    target = min(int(ctx.cpu_count) // CPUS_PER_WORKER, CAP)
    if target <= int(found):
        return LEVER.skip(f"{found} workers suffice for {ctx.cpu_count:g} CPUs")
    line = LEVER.propose(
        ctx,
        "io_workers",
        str(target),
        reason=f"a quarter of {ctx.cpu_count:g} CPUs; {found} workers would limit read-ahead of all sessions",
        evidence='PostgreSQL manual, "io_workers"; pgtune uses a quarter of the CPUs too',
    )
    return LEVER.planned([line], f"already {target}")
