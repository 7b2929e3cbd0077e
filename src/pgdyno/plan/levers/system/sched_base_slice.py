"""sched_base_slice: time slices as long as on a larger machine.

What it does:
    Raises the scheduler's base slice to 2.8 ms if it is less; this is Linux's default on machines with 8 or
    more CPUs. Kernels from 6.6 on have it, and show it in debugfs.

Why it helps:
    On a machine with few CPUs the kernel uses short slices, to keep desktops responsive. Each of a server's
    many processes is then preempted sooner, even while it holds a lock that others wait for, and finds its
    cached data evicted when it resumes.

When it hurts:
    A woken process waits longer for a CPU: clients on the same machine may see higher latency.

How it is verified:
    The value is read back from the kernel.

How it is undone:
    The value found is written back.

Evidence:
    The rule is reasoned; not measured by pgdyno yet.

References:
    https://docs.kernel.org/scheduler/sched-eevdf.html
    https://docs.kernel.org/scheduler/sched-debug.html
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk

SLICE = "/sys/kernel/debug/sched/base_slice_ns"
LARGE_MACHINE_NS = 2_800_000  # Linux, kernel/sched/fair.c: 0.7 ms × (1 + log2 of the CPUs, of at most 8)
NS_PER_MS = 1_000_000

LEVER = Lever(
    name="sched_base_slice",
    title="time slices as long as on a large machine",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    files=(SLICE,),
    is_instant=True,
)


def plan(ctx: PlanContext) -> Planned:
    """Propose a large machine's slice if the present one is shorter."""
    found_ns = int(ctx.value(SLICE) or 0)
    now = f"a process may be preempted after {found_ns / NS_PER_MS:g} ms"
    if found_ns >= LARGE_MACHINE_NS:
        return LEVER.skip(f"{now}, as on machines with 8 CPUs or more")
    line = LEVER.propose_file(
        ctx,
        SLICE,
        str(LARGE_MACHINE_NS),
        reason=f"{now}, on machines with 8 CPUs or more after {LARGE_MACHINE_NS / NS_PER_MS:g} ms",
        evidence="Linux, kernel/sched/fair.c; the rule is reasoned, not measured",
    )
    return LEVER.planned([line], now)
