"""sched_migration_cost: processes migrate less between CPUs.

What it does:
    Raises the time for which the kernel considers a process cache-hot on its CPU to 5 ms, if it is less. It
    is in debugfs from Linux 5.13 on, and was a sysctl before.

Why it helps:
    A CPU that becomes idle pulls a process from another one, unless that process ran very recently. At 0.5 ms
    this moves many backends away from their cached data, and costs a search each time.

When it hurts:
    With few runnable processes, a CPU may stay idle while another has two.

How it is verified:
    The value is read back from the kernel.

How it is undone:
    The value found is written back.

Evidence:
    A report of 2013 (many backends, Linux 3.2) advises 5 ms; TuneD's profile postgresql sets 50 ms. Not yet
    measured by pgdyno.

References:
    https://www.postgresql.org/message-id/50E4AAB1.9040902@optionshouse.com
    https://docs.kernel.org/scheduler/sched-debug.html
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, Need, PlanContext, Planned, Risk, sysctl_path

COSTS = ("/sys/kernel/debug/sched/migration_cost_ns", sysctl_path("kernel.sched_migration_cost_ns"))
WARM_NS = 5_000_000
NS_PER_MS = 1_000_000

LEVER = Lever(
    name="sched_migration_cost",
    title="processes stay on CPUs with their cached data",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    files=COSTS,
    is_instant=True,
    needs=(Need.CPUS,),
)


def plan(ctx: PlanContext) -> Planned:
    """Propose 5 ms on a machine with several CPUs."""
    if ctx.cpu_count < 2:
        return LEVER.skip("no migration with one CPU")
    found_ns = {path: int(value) for path in COSTS if (value := ctx.value(path)) is not None}
    lines = [
        LEVER.propose_file(
            ctx,
            path,
            str(WARM_NS),
            reason=f"a backend may be moved to another of {ctx.cpu_count:g} CPUs {cost_ns / NS_PER_MS:g} ms "
            "after it ran",
            evidence="pgsql-performance, 2013: 5 ms; TuneD's profile postgresql: 50 ms",
        )
        for path, cost_ns in found_ns.items()
        if cost_ns < WARM_NS
    ]
    costs = ", ".join(f"{cost_ns / NS_PER_MS:g} ms" for cost_ns in found_ns.values())
    return LEVER.planned(lines, f"a process is already considered cache-hot for {costs}")
