"""swappiness: the kernel drops cached file pages before it swaps out a server's memory.

What it does:
    Lowers vm.swappiness to 10 if it is higher.

Why it helps:
    shared_buffers and sorts use anonymous or shared memory: at 60 the kernel may swap out recently unused
    pages in favour of file pages that are read once, such as a backup's. Swapping them in stalls a
    transaction for milliseconds.

When it hurts:
    On a machine that needs swap for other programs, their pages stay in memory longer.

How it is verified:
    The value is read back from the kernel.

How it is undone:
    The value found is written back.

Evidence:
    TuneD's postgresql profile sets 3; common advice is 1 to 10. It matters only under memory pressure, and no
    gain in throughput is expected. In whole trials with ample memory (sysbench, 2 CPUs, 11 and 12 rounds) no
    effect was found; an effect below 10 to 20 % would have been missed.

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
    """Propose 10 if the present value is higher."""
    found = int(ctx.value(SWAPPINESS) or 0)
    if found <= HIGHEST:
        return Skipped(LEVER.name, f"vm.swappiness is already {found}")
    line = propose_file(
        ctx,
        LEVER,
        SWAPPINESS,
        str(HIGHEST),
        reason=f"at {found} the kernel swaps out server memory to keep file pages that are read once",
        evidence="Linux, sysctl/vm.rst; TuneD's profile postgresql sets 3",
    )
    return lines_or_skipped(LEVER, [line], "already set")


detect = detect_files(LEVER, plan)
