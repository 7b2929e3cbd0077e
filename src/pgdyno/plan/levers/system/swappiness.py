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

from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk, sysctl_path

SWAPPINESS = sysctl_path("vm.swappiness")
HIGHEST = 10

LEVER = Lever(
    name="swappiness",
    title="server memory swapped out last",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    files=(SWAPPINESS,),
)


def plan(ctx: PlanContext) -> Planned:
    """Propose 10 if the present value is higher."""
    found = int(ctx.value(SWAPPINESS) or 0)
    if found <= HIGHEST:
        return LEVER.skip(f"vm.swappiness is already {found}")
    line = LEVER.propose_file(
        ctx,
        SWAPPINESS,
        str(HIGHEST),
        reason=f"at {found} the kernel swaps out server memory to keep file pages that are read once",
        evidence="Linux, sysctl/vm.rst; TuneD's profile postgresql sets 3",
    )
    return LEVER.planned([line], "already set")
