"""sched_granularity: processes are preempted less often, on kernels before 6.6.

What it does:
    Raises the minimum run time of a process to 10 ms, and the lead that a woken process needs to preempt it
    to 15 ms, if they are less. Both were sysctls before Linux 5.13, and in debugfs from there to 6.5; later
    kernels have a different scheduler (see sched_base_slice).

Why it helps:
    With many backends on few CPUs, each runs for a short time and loses its cached data; a backend preempted
    while it holds a lock stops all that wait for it.

When it hurts:
    A woken process waits longer for a CPU: clients on the same machine may see higher latency.

How it is verified:
    The values are read back from the kernel.

How it is undone:
    The values found are written back.

Evidence:
    TuneD's profile postgresql sets 10 ms; throughput-performance, which it includes, sets 15 ms. Not yet
    measured by pgdyno.

References:
    https://docs.kernel.org/scheduler/sched-design-CFS.html
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk, display_name, sysctl_path

DEBUG = "/sys/kernel/debug/sched"
RUNS_NS, LEAD_NS = 10_000_000, 15_000_000
LEAST_NS = {
    f"{DEBUG}/min_granularity_ns": RUNS_NS,
    f"{DEBUG}/wakeup_granularity_ns": LEAD_NS,
    sysctl_path("kernel.sched_min_granularity_ns"): RUNS_NS,
    sysctl_path("kernel.sched_wakeup_granularity_ns"): LEAD_NS,
}
NS_PER_MS = 1_000_000

LEVER = Lever(
    name="sched_granularity",
    title="processes preempted less often (Linux before 6.6)",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    files=tuple(LEAST_NS),
    is_instant=True,
)


def plan(ctx: PlanContext) -> Planned:
    """Propose TuneD's values if the kernel preempts earlier."""
    found_ns = {path: int(value) for path in LEAST_NS if (value := ctx.value(path)) is not None}
    connections = ctx.settings.text("max_connections")
    lines = [
        LEVER.propose_file(
            ctx,
            path,
            str(LEAST_NS[path]),
            reason=f"up to {connections} backends may preempt each other after {value_ns / NS_PER_MS:g} ms",
            evidence="TuneD's profiles postgresql and throughput-performance",
        )
        for path, value_ns in found_ns.items()
        if value_ns < LEAST_NS[path]
    ]
    have = ", ".join(f"{display_name(path)} = {value_ns}" for path, value_ns in found_ns.items())
    return LEVER.planned(lines, f"long enough: {have}")
