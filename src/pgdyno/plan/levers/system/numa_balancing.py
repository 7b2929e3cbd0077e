"""numa_balancing: no migration of shared memory between NUMA nodes.

What it does:
    Turns kernel.numa_balancing off on a machine with several NUMA nodes.

Why it helps:
    To find out which node uses a page, the kernel repeatedly unmaps pages and observes the resulting minor
    faults. Processes on all nodes use the same shared buffers, which belong to no single node, so these
    faults are wasted.

When it hurts:
    Private memory of long sorts no longer migrates to the node of its process. Other kinds of servers on the
    machine may gain from balancing.

How it is verified:
    The value is read back from the kernel.

How it is undone:
    The value found is written back.

Evidence:
    The kernel's documentation: the benefit does not always outweigh the faults. Remote memory cost 4.5 % with
    huge pages and 7 % without in a published TPROC-C run; not measured by pgdyno yet.

References:
    https://docs.kernel.org/admin-guide/sysctl/kernel.html#numa-balancing
    https://n0derunner.com/notes-on-tuning-postgres-for-memory-benchmarks
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk, sysctl_path

BALANCING = sysctl_path("kernel.numa_balancing")
OFF, ORDINARY = "0", "1"

LEVER = Lever(
    name="numa_balancing",
    title="no page migration between NUMA nodes",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    files=(BALANCING,),
)


def plan(ctx: PlanContext) -> Planned:
    """Propose to turn it off on a machine with several NUMA nodes."""
    found = ctx.value(BALANCING)
    if found not in (OFF, ORDINARY):
        return LEVER.skip(f"kernel.numa_balancing is {found}: it also moves pages to slower memory")
    nodes = None if ctx.host is None else ctx.host.cpu.numa_nodes.or_none()
    if nodes is None:
        return LEVER.skip(f"the NUMA nodes are not known (kernel.numa_balancing = {found})")
    if nodes == 1:
        return LEVER.skip(f"no effect with one NUMA node (kernel.numa_balancing = {found})")
    line = LEVER.propose_file(
        ctx,
        BALANCING,
        OFF,
        reason=f"all {nodes} NUMA nodes use the shared buffers, which belong to none of them",
        evidence="Linux, sysctl/kernel.rst",
    )
    return LEVER.planned([line], f"{nodes} NUMA nodes, and balancing is already off")
