"""huge_page_pool: exactly as many huge pages as the server's shared memory takes.

What it does:
    Raises the number of reserved huge pages of the size that the server asks for (huge_page_size, else the
    kernel's default) to what its shared memory takes with the planned settings. The server's own programs are
    asked for the number where they can be; else it is estimated, with a margin.

Why it helps:
    Only reserved pages are used for shared memory: with huge_pages = try a pool that is one page too small
    means 4 kB pages for all of it. With 2 MB pages every process needs 512 times fewer page table entries,
    and meets fewer minor faults and TLB misses.

When it hurts:
    Reserved pages are lost for everything else, also while the server does not run. Where that is too much,
    nr_overcommit_hugepages beside the pool lets the kernel lend pages to the server when it starts: nothing
    is lost meanwhile, but where memory is scattered by then there are none, and huge_pages = try takes 4 kB
    pages without a word. The kernel lends none of 1 GB.

How it is verified:
    The sum over the NUMA nodes' own pools; in the server huge_pages_status (17 and later).

How it is undone:
    The former number is written back. Pages in use are given back when the server ends.

Evidence:
    pgdyno pilot (2 CPUs, 2 GB of shared_buffers, 612 MB of data): ×1.08 read-only, ×1.10 read-write over 4 kB
    pages. With 1 GB and CPUs awake: +6.7 % (3.2 to 10.3) and +8.8 % (3.7 to 14.1; docs/results). Others: +7.5
    % for pgbench -S (7.4 GB of data in 16 GB of buffers), +3.8 % for TPROC-C.

References:
    https://www.postgresql.org/docs/current/kernel-resources.html#LINUX-HUGE-PAGES
    https://docs.kernel.org/admin-guide/mm/hugetlbpage.html
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pgdyno.base import numbers
from pgdyno.model.plans.plan import Effect
from pgdyno.plan.levers._contract import (
    GB,
    KB,
    Detected,
    HugePages,
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    PlanLine,
    Risk,
    Skipped,
    State,
    lines_or_skipped,
    propose_file,
    shared_memory_bytes,
    why_absent,
)

POOLS = "/sys/kernel/mm/hugepages"

LEVER = Lever(
    name="huge_page_pool",
    title="huge pages reserved for shared memory",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.STABLE,
    files=(f"{POOLS}/*/nr_hugepages",),
    reads=("/sys/devices/system/node/*/hugepages/*/nr_hugepages", f"{POOLS}/*/nr_overcommit_hugepages"),
    needs=(Need.MEMORY,),
    order_after={
        "shared_buffers": "the pool has to hold the planned shared memory",
        "max_connections": "each connection takes shared memory",
        "huge_pages": "a server that does not ask for huge pages needs no pool",
    },
)

ESTIMATE_MARGIN = 0.02  # the estimate was within 1 % of ``postgres -C shared_memory_size`` on 15 and 18
WORTH_RESERVING_BYTES = 256 << 20  # below that page tables are small; see the study huge-pages
AVAILABLE_SHARE = 0.9  # of the available memory: the kernel needs the rest to move pages together


def detect(ctx: PlanContext) -> Detected:
    """Compare the pool with the shared memory that the server has now."""
    if not any(map(ctx.files, LEVER.files)):
        return Detected(State.ABSENT, why_absent(ctx, LEVER))
    pool = ctx.resources.huge_pages.or_none()
    if pool is None:
        return Detected(State.ABSENT, ctx.why_unknown(ctx.resources.huge_pages))
    needed = math.ceil(shared_memory_bytes(ctx.settings) / pool.page_bytes)
    state = State.OFF if pool.usable == 0 else State.PARTIAL if pool.usable < needed else State.ON
    return Detected(
        state, f"{pool.usable} pages of {numbers.size(pool.page_bytes)} are free or its own, {needed} wanted"
    )


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Propose a pool that holds the planned shared memory."""
    pool = ctx.resources.huge_pages.or_none()
    if pool is None:
        return Skipped(LEVER.name, ctx.why_unknown(ctx.resources.huge_pages))
    if ctx.settings.text("huge_pages") == "off":
        return Skipped(LEVER.name, "the server does not ask for huge pages: huge_pages is off")
    size_bytes, margin_bytes, how = _shared_memory(ctx)
    least, needed = (math.ceil(size / pool.page_bytes) for size in (size_bytes, size_bytes + margin_bytes))
    facts = (
        f"{numbers.size(size_bytes)} of shared memory ({how}) take {needed} pages of "
        f"{numbers.size(pool.page_bytes)}"
    )
    if pool.usable >= least:
        return Skipped(LEVER.name, f"{facts}; the pool has {pool.usable} for it")
    lent = _may_be_lent(ctx, pool)
    if lent and pool.usable + lent >= least:
        return Skipped(
            LEVER.name,
            f"{facts}; the pool has {pool.usable}, and the kernel may lend {lent} at the server's start "
            "(nr_overcommit_hugepages), if memory is not scattered by then",
        )
    if obstacle := _obstacle(ctx, pool, size_bytes, needed):
        return Skipped(LEVER.name, f"{facts}; {obstacle}")
    path = f"{_directory(pool)}/nr_hugepages"
    reserved = int(ctx.value(path) or 0)
    line = propose_file(
        ctx,
        LEVER,
        path,
        str(reserved - pool.usable + needed),
        reason=f"{facts}, and {pool.usable} are to be had{_alternative(pool, needed)}",
        evidence='PostgreSQL manual, "Linux Huge Pages"; pgdyno pilot: ×1.08 read-only, ×1.10 read-write',
        effect=Effect.RESTART,  # a server takes its pages when it starts
    )
    return lines_or_skipped(LEVER, [line], facts)


def _directory(pool: HugePages) -> str:
    return f"{POOLS}/hugepages-{pool.page_bytes // KB}kB"


def _alternative(pool: HugePages, needed: int) -> str:
    """Say how pages are borrowed instead of reserved, which the kernel does for sizes below 1 GB."""
    if pool.page_bytes >= GB:
        return ""
    return (
        f". To borrow them from the server's start to its end instead: echo {needed} > "
        f"{_directory(pool)}/nr_overcommit_hugepages, while memory is not scattered"
    )


def _may_be_lent(ctx: PlanContext, pool: HugePages) -> int:
    """Return how many pages more than the pool has the kernel may give to who asks."""
    allowed = int(ctx.value(f"{_directory(pool)}/nr_overcommit_hugepages") or 0)
    pools = {} if ctx.host is None else ctx.host.memory.huge_pages.or_else({})
    found = pools.get(pool.page_bytes)
    return max(allowed - found.surplus, 0) if found is not None else 0


def _shared_memory(ctx: PlanContext) -> tuple[int, int, str]:
    """Return the planned shared memory in bytes, how much more it may be, and how it is known."""
    if ctx.probe is not None:
        told = ctx.probe.shared_memory_bytes(ctx.settings.planned)
        if (known := told.or_none()) is not None:
            return known, 0, told.source
    estimate_bytes = shared_memory_bytes(ctx.settings)
    return estimate_bytes, int(estimate_bytes * ESTIMATE_MARGIN), "estimated, with a margin of 2 %"


def _obstacle(ctx: PlanContext, pool: HugePages, size_bytes: int, needed: int) -> str | None:
    if size_bytes < WORTH_RESERVING_BYTES:
        return "that is too little for page tables to matter"
    host = ctx.host
    available = None if host is None else host.memory.available_bytes.or_none()
    missing_bytes = (needed - pool.usable) * pool.page_bytes
    if available is not None and missing_bytes > AVAILABLE_SHARE * available:
        return (
            f"{numbers.size(missing_bytes)} are missing, and only {numbers.size(available)} of "
            "memory are available"
        )
    limits = None if host is None else host.limits.hugetlb_bytes.or_none()
    limit_bytes = (limits or {}).get(pool.page_bytes)
    if limit_bytes is not None and limit_bytes < size_bytes:
        return f"the server's control group may have {numbers.size(limit_bytes)} of them"
    return None
