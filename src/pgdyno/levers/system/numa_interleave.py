"""numa_interleave: shared buffers spread evenly over the NUMA nodes; reported only.

What it does:
    Says on how many nodes the server's memory may lie, and how it is started with its memory spread over all
    of them. It changes nothing: a process gets its memory policy from whoever starts it.

Why it helps:
    A page lies on the node whose CPU touches it first. A server that is warmed by one process, or by
    pg_prewarm, fills one node's memory, whose channels then serve everybody, and another's after the next
    start. Spread, every start is like every other.

When it hurts:
    The policy holds for private memory as well: sorts and hash tables lie on far nodes too. A server that
    fits on one node with its CPUs is better confined to it (see cpu_pinning).

How it is verified:
    grep /dev/zero /proc/PID/numa_maps, or anon_hugepage with huge pages: interleave, and N0=, N1=, … pages on
    each node.

How it is undone:
    Nothing is changed. By hand: take the lines out of the unit and restart the server.

Evidence:
    Remote memory cost 4.5 % with huge pages and 7 % without in a published TPROC-C run; in a published
    campaign on a divided processor the placement of shared memory changed with every start, and the results
    with it. No figure of our own yet.

References:
    https://www.freedesktop.org/software/systemd/man/latest/systemd.exec.html#NUMAPolicy=
    https://docs.kernel.org/admin-guide/mm/numa_memory_policy.html
    https://n0derunner.com/notes-on-tuning-postgres-for-memory-benchmarks
"""

from __future__ import annotations

from pgdyno.levers._contract import (
    Layer,
    Lever,
    Maturity,
    PlanContext,
    Risk,
    Skipped,
    detect_report,
    verify_files,
)

NODES = "host.cpu.numa_nodes"
IN_UNIT = ("NUMAPolicy=interleave", "NUMAMask=all")

LEVER = Lever(
    name="numa_interleave",
    title="shared buffers spread over the NUMA nodes",
    layer=Layer.SYSTEM,
    risk=Risk.RESTART,
    maturity=Maturity.PREVIEW,
    facts=(NODES,),
)


def plan(ctx: PlanContext) -> Skipped:
    """Report, with the ways to spread them."""
    nodes = ctx.known(NODES)
    if nodes == 1:
        return Skipped(LEVER.name, "reported only: one NUMA node, all memory is equally near")
    return Skipped(
        LEVER.name,
        f"reported only: {nodes} NUMA nodes, and shared memory lies where it was touched first; to spread "
        f"it: {' and '.join(IN_UNIT)} in the unit's [Service], or start the server with "
        "numactl --interleave=all before the command",
        IN_UNIT,
    )


def _is_in_use(_ctx: PlanContext) -> bool:
    return False  # /proc/PID/numa_maps would tell, but reading it walks all pages of a large server


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
