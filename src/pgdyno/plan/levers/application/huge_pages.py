"""huge_pages: used if the pool suffices, without ever preventing a start.

What it does:
    Sets huge_pages to try if it is off although the pool of huge pages is large enough, or if it is on
    although the pool cannot hold the planned shared memory. It is never set to on: try is as fast, and falls
    back to normal pages where a server with on would not start. The system layer sizes the pool.

Why it helps:
    With 2 MB pages each process needs 512 times fewer page table entries for shared_buffers, fewer minor
    faults and fewer TLB misses.

When it hurts:
    A pool that is too small stays reserved and unused while the server runs on normal pages.

How it is verified:
    huge_pages_status of the running server (17 and later), else pg_settings.

How it is undone:
    The value found is restored; requires a restart.

Evidence:
    pgdyno pilot (2 CPUs, 2 GB of shared_buffers, 612 MB of data): ×1.08 read-only, ×1.10 read-write over
    4 kB pages. Others: +3.9 % on HammerDB TPROC-C.

References:
    https://www.postgresql.org/docs/current/kernel-resources.html#LINUX-HUGE-PAGES
    https://www.n0derunner.com/notes-on-tuning-postgres-for-memory-benchmarks
"""

from __future__ import annotations

from pgdyno.base import numbers
from pgdyno.plan.levers._contract import (
    Layer,
    Lever,
    Maturity,
    PlanContext,
    Planned,
    Risk,
    shared_memory_bytes,
)

LEVER = Lever(
    name="huge_pages",
    title="huge pages tried, never required",
    layer=Layer.APPLICATION,
    risk=Risk.RESTART,
    maturity=Maturity.STABLE,
    settings=("huge_pages",),
    order_after={"shared_buffers": "the pool must hold the planned shared memory"},
)


def plan(ctx: PlanContext) -> Planned:
    """Propose ``try`` if the present value costs speed or could prevent a start."""
    found = ctx.settings.text("huge_pages")
    needed_bytes = shared_memory_bytes(ctx.settings)
    pool = ctx.resources.huge_pages.or_none()
    pool_bytes = pool.usable * pool.page_bytes if pool is not None else 0
    have = f"the pool has {numbers.size(pool_bytes)}" if pool is not None else "the pool's size is not known"
    facts = f"{numbers.size(needed_bytes)} of shared memory are planned and {have}"
    if found == "try":
        return LEVER.skip(f"already try, which uses huge pages if they suffice: {facts}")
    if found == "off" and pool_bytes < needed_bytes:
        return LEVER.skip(f"left off: {facts}")
    if found == "on" and pool_bytes >= needed_bytes:
        return LEVER.skip(f"on, and the pool suffices: {facts}")
    reason = f"{facts}: " + ("try would use it" if found == "off" else "with on the server might not start")
    line = LEVER.propose(
        ctx,
        "huge_pages",
        "try",
        reason=reason,
        evidence='PostgreSQL manual, "Linux Huge Pages"; pgdyno pilot: ×1.08 read-only, ×1.10 read-write',
    )
    return LEVER.planned([line], facts)
