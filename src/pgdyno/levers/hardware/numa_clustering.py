"""numa_clustering: whether each processor is divided into several NUMA nodes; reported only.

What it does:
    Compares the number of NUMA nodes with that of sockets. More nodes than sockets: the firmware divides each
    processor (Sub-NUMA Clustering, SNC, with Intel; Nodes Per Socket, NPS, with AMD).

Why it helps:
    Memory of the own node is nearer. Shared buffers lie in one place for all backends, so that most of their
    memory is then another node's.

When it hurts:
    Divided, a server that fills one node's memory first is slower than on an undivided processor; which
    node that is changes from start to start.

How it is verified:
    The kernel's nodes and sockets.

How it is undone:
    Nothing is changed: only the firmware can.

Evidence:
    No figure of our own yet. In a published campaign on a server with SNC the placement of shared memory
    changed with every restart, and the results with it.

References:
    https://docs.kernel.org/admin-guide/mm/numaperf.html
    https://github.com/andrewkim-pkt/postgres-pgo-lto-bolt
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
    is_virtual,
    verify_files,
)

NODES, SOCKETS = "host.cpu.numa_nodes", "host.cpu.socket_count"

LEVER = Lever(
    name="numa_clustering",
    title="processors divided into NUMA nodes",
    layer=Layer.HARDWARE,
    risk=Risk.REBOOT,
    maturity=Maturity.PREVIEW,
    facts=(NODES, SOCKETS),
)


def plan(ctx: PlanContext) -> Skipped:
    """Report; only the firmware can change it."""
    nodes, sockets = ctx.known(NODES), ctx.known(SOCKETS)
    found = f"nodes {nodes}, sockets {sockets}: the processors are not divided"
    if nodes > sockets:
        found = (
            f"nodes {nodes}, sockets {sockets}: the firmware divides each processor (SNC, NPS); for one "
            "server on all of it, undivided is the simpler choice"
        )
    elif nodes < sockets:
        found = f"nodes {nodes}, sockets {sockets}: the firmware hides which memory is near"
    told_by = (
        "; the hypervisor decides which values are visible here" if ctx.host and is_virtual(ctx.host) else ""
    )
    return Skipped(LEVER.name, f"reported only: {found}{told_by}")


def _is_in_use(ctx: PlanContext) -> bool:
    return bool(ctx.known(NODES) > ctx.known(SOCKETS))


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
