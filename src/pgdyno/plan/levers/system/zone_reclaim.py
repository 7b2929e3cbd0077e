"""zone_reclaim: cached file pages stay, also where the NUMA node's own memory is full.

What it does:
    Sets vm.zone_reclaim_mode to 0 where it is something else, unless the machine has one NUMA node only.

Why it helps:
    With it a process whose node is full drops cached file pages of that node before it takes free memory of
    another: what the server has read is read from the disk again, and processes stall while they look for
    pages to drop.

When it hurts:
    Where every program fits into a node of its own, memory that is near is worth more than the cache.

How it is verified:
    The kernel's value, read anew.

How it is undone:
    The value found is written back.

Evidence:
    The kernel's documentation says to leave it off for workloads that benefit from cached data. No figure of
    our own yet.

References:
    https://docs.kernel.org/admin-guide/sysctl/vm.html#zone-reclaim-mode
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

MODE = sysctl_path("vm.zone_reclaim_mode")
OFF = "0"

LEVER = Lever(
    name="zone_reclaim",
    title="cached pages kept when a NUMA node is full",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    files=(MODE,),
)


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Propose to turn it off where there are nodes between which it decides."""
    found = ctx.value(MODE)
    if ctx.host is not None and ctx.host.cpu.numa_nodes.or_none() == 1:
        return Skipped(LEVER.name, f"with one NUMA node it does nothing (vm.zone_reclaim_mode = {found})")
    line = propose_file(
        ctx,
        LEVER,
        MODE,
        OFF,
        reason=f"at {found} a full NUMA node drops its cache before it takes free memory of another",
        evidence="Linux, sysctl/vm.rst",
    )
    return lines_or_skipped(LEVER, [line], "vm.zone_reclaim_mode is 0 already")


detect = detect_files(LEVER, plan)
