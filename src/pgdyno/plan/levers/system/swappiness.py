"""swappiness: the kernel drops cached file pages before it swaps out a server's memory.

What it does:
    Lowers vm.swappiness to 10 where it is higher.

Why it helps:
    shared_buffers and sorts are anonymous or shared memory: at 60 the kernel may swap out what has not been
    used for a while in favour of file pages that are read once, such as a backup's. Reading it back stalls a
    transaction for milliseconds.

When it hurts:
    On a machine that needs swap for other programs, their pages stay in memory longer.

How it is verified:
    The kernel's value, read anew.

How it is undone:
    The value found is written back.

Evidence:
    TuneD's postgresql profile sets 3, common advice is 1 to 10. It matters under memory pressure only: no
    throughput is promised. In whole trials with memory to spare (sysbench, 2 CPUs, 11 and 12 rounds) no
    effect was found; one below 10 to 20 % would have been missed.

References:
    https://docs.kernel.org/admin-guide/sysctl/vm.html#swappiness
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

SWAPPINESS = sysctl_path("vm.swappiness")
HIGHEST = 10

LEVER = Lever(
    name="swappiness",
    title="server memory swapped out last",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    files=(SWAPPINESS,),
)


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Propose 10 where the kernel swaps more readily."""
    found = int(ctx.value(SWAPPINESS) or 0)
    if found <= HIGHEST:
        return Skipped(LEVER.name, f"vm.swappiness is {found} already")
    line = propose_file(
        ctx,
        LEVER,
        SWAPPINESS,
        str(HIGHEST),
        reason=f"at {found} the kernel swaps out server memory to keep file pages that are read once",
        evidence="Linux, sysctl/vm.rst; TuneD's profile postgresql sets 3",
    )
    return lines_or_skipped(LEVER, [line], "as it should be")


detect = detect_files(LEVER, plan)
