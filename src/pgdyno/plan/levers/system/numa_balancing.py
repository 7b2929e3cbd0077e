"""numa_balancing: shared memory is not moved about between NUMA nodes.

What it does:
    Turns kernel.numa_balancing off on a machine with several NUMA nodes.

Why it helps:
    To see which node uses a page, the kernel takes pages out of the page tables again and again, and waits
    for the minor faults. Processes on all nodes use the same shared buffers: there is no node to which they
    belong, and the faults are paid for nothing.

When it hurts:
    Private memory of long sorts is no longer moved to where its process runs. Servers of other kinds on the
    machine may gain from balancing.

How it is verified:
    The kernel's value, read anew.

How it is undone:
    The value found is written back.

Evidence:
    The kernel's documentation says that the faults are not always worth it. Remote memory cost 4.5 % with
    huge pages and 7 % without in a published TPROC-C run; not measured by pgdyno yet.

References:
    https://docs.kernel.org/admin-guide/sysctl/kernel.html#numa-balancing
    https://n0derunner.com/notes-on-tuning-postgres-for-memory-benchmarks
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.plan.levers._contract import (
    Layer,
    Lever,
    Maturity,
    PlanContext,
    PlanLine,
    Risk,
    Skipped,
    detect_files,
    lines_or_skipped,
    propose_file,
    sysctl_path,
)

BALANCING = sysctl_path("kernel.numa_balancing")
OFF, ORDINARY = "0", "1"

LEVER = Lever(
    name="numa_balancing",
    title="no moving of pages between NUMA nodes",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    files=(BALANCING,),
)


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Propose to turn it off where there are nodes to move pages between."""
    found = ctx.value(BALANCING)
    if found not in (OFF, ORDINARY):
        return Skipped(LEVER.name, f"kernel.numa_balancing is {found}: it also moves pages to slower memory")
    nodes = None if ctx.host is None else ctx.host.cpu.numa_nodes.or_none()
    if nodes is None:
        return Skipped(LEVER.name, f"the NUMA nodes are not known (kernel.numa_balancing = {found})")
    if nodes == 1:
        return Skipped(LEVER.name, f"with one NUMA node it does nothing (kernel.numa_balancing = {found})")
    line = propose_file(
        ctx,
        LEVER,
        BALANCING,
        OFF,
        reason=f"the shared buffers are used from all {nodes} NUMA nodes, and belong to none of them",
        evidence="Linux, sysctl/kernel.rst",
    )
    return lines_or_skipped(LEVER, [line], f"{nodes} NUMA nodes, and balancing is off already")


detect = detect_files(LEVER, plan)
