"""zone_reclaim: cached file pages are kept even if the NUMA node is full.

What it does:
    Sets vm.zone_reclaim_mode to 0 if it is not 0, unless the machine has only one NUMA node.

Why it helps:
    Otherwise a process on a full node evicts cached file pages of that node before it uses free memory of
    another node: the server must read these pages from disk again, and processes stall during the reclaim.

When it hurts:
    If every program fits into its own node, local memory is worth more than the cache.

How it is verified:
    The value is read back from the kernel.

How it is undone:
    The value found is written back.

Evidence:
    The kernel's documentation recommends leaving it off for workloads that benefit from cached data. Not yet
    measured by pgdyno.

References:
    https://docs.kernel.org/admin-guide/sysctl/vm.html#zone-reclaim-mode
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk, sysctl_path

MODE = sysctl_path("vm.zone_reclaim_mode")
OFF = "0"

LEVER = Lever(
    name="zone_reclaim",
    title="cached pages kept when a NUMA node is full",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    files=(MODE,),
)


def plan(ctx: PlanContext) -> Planned:
    """Propose to turn it off on a machine with several NUMA nodes."""
    found = ctx.value(MODE)
    if ctx.host is not None and ctx.host.cpu.numa_nodes.or_none() == 1:
        return LEVER.skip(f"no effect with one NUMA node (vm.zone_reclaim_mode = {found})")
    line = LEVER.propose_file(
        ctx,
        MODE,
        OFF,
        reason=f"at {found}, a full NUMA node evicts cached pages before it uses free memory of another",
        evidence="Linux, sysctl/vm.rst",
    )
    return LEVER.planned([line], "vm.zone_reclaim_mode is already 0")
