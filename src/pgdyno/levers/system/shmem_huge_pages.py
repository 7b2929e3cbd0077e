"""shmem_huge_pages: transparent huge pages for shared memory, where no pool is possible.

What it does:
    Reports whether the kernel gives them to shared memory (shmem_enabled). It changes nothing.

Why it helps:
    Where no pool of huge pages can be had, as in a container that may have none, always and within_size let
    the server's shared memory take 2 MB pages as it is touched. PostgreSQL does not ask for them with
    madvise, so that advise does nothing for it.

When it hurts:
    Everything else that shares memory gets them too, and a page that is touched once takes 2 MB. Nothing is
    promised: where memory is scattered, the kernel takes 4 kB pages without a word. A pool is certain, and
    concerns nobody else: that is why this is left alone by default.

How it is verified:
    ShmemPmdMapped in /proc/PID/smaps of a server process: how much of its shared memory is mapped so.

How it is undone:
    There is nothing to undo. By hand: the choice found is written back; it holds for memory touched later.

Evidence:
    No figure of our own yet.

References:
    https://docs.kernel.org/admin-guide/mm/transhuge.html
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
    shared_memory_bytes,
    verify_files,
)

CHOICE = "/sys/kernel/mm/transparent_hugepage/shmem_enabled"
GIVEN_UNASKED = ("always", "within_size", "force")
POOLS = "/sys/kernel/mm/hugepages/"

LEVER = Lever(
    name="shmem_huge_pages",
    title="transparent huge pages for shared memory",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    reads=(CHOICE,),
    is_instant=True,
    order_after={"huge_page_pool": "a pool is certain; this is the next best"},
)


def plan(ctx: PlanContext) -> Skipped:
    """Say whether shared memory has them, and why nothing is changed."""
    choice = ctx.value(CHOICE)
    if _is_in_use(ctx):
        told = "ShmemPmdMapped in /proc/PID/smaps says how much of the server's has them"
        return Skipped(LEVER.name, f"shared memory is given them (shmem_enabled = {choice}): {told}")
    left = f"shmem_enabled stays at {choice}"
    if _has_pool(ctx):
        return Skipped(LEVER.name, f"{left}: the pool holds the shared memory, and affects no other program")
    return Skipped(
        LEVER.name,
        f"{left}: everything that shares memory would take them, and none are promised. Where no pool is to "
        f"be had, write within_size into {CHOICE}, restart the server and look at ShmemPmdMapped in "
        "/proc/PID/smaps",
    )


def _has_pool(ctx: PlanContext) -> bool:
    pool = ctx.resources.huge_pages.or_none()
    suffices = pool is not None and pool.usable * pool.page_bytes >= shared_memory_bytes(ctx.settings)
    return suffices or any(path.startswith(POOLS) for path in ctx.planned_files)


def _is_in_use(ctx: PlanContext) -> bool:
    return ctx.value(CHOICE) in GIVEN_UNASKED


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
