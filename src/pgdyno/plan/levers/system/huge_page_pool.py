"""huge_page_pool: exactly as many huge pages as the server's shared memory needs.

What it does:
    Raises the number of reserved huge pages of the server's size (huge_page_size, else the kernel's default)
    to the need of its shared memory with the planned settings. The number comes from the server's programs if
    they are accessible; otherwise it is estimated, with a margin.

Why it helps:
    Shared memory uses only reserved pages: with huge_pages = try and a pool that is one page too small, all
    of it is on 4 kB pages. With 2 MB pages every process needs 512 times fewer page table entries, and has
    fewer minor faults and TLB misses.

When it hurts:
    Reserved pages are unavailable for anything else, even while the server is stopped. If that is too much,
    nr_overcommit_hugepages, next to the pool, makes the kernel allocate surplus pages when the server starts.
    It reserves nothing in advance, but if memory is fragmented at the start, allocation fails and
    huge_pages = try silently uses 4 kB pages. The kernel has no surplus pages of 1 GB.

How it is verified:
    The sum over the pools of the NUMA nodes; in the server huge_pages_status (17 and later).

How it is undone:
    The former number is written back. Pages in use are released when the server stops.

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
    Planned,
    Risk,
    State,
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
        "shared_buffers": "the pool must hold the planned shared memory",
        "max_connections": "each connection takes shared memory",
        "huge_pages": "a server that does not use huge pages needs no pool",
    },
)

ESTIMATE_MARGIN = 0.02  # the estimate was within 1 % of ``postgres -C shared_memory_size`` on 15 and 18
WORTH_RESERVING_BYTES = 256 << 20  # below that page tables are small; see the study huge-pages
AVAILABLE_SHARE = 0.9  # of the available memory: the kernel needs the rest for compaction


def detect(ctx: PlanContext) -> Detected:
    """Compare the pool with the server's present shared memory."""
    if not any(map(ctx.files, LEVER.files)):
        return Detected(State.ABSENT, why_absent(ctx, LEVER))
    pool = ctx.resources.huge_pages.or_none()
    if pool is None:
        return Detected(State.ABSENT, ctx.why_unknown(ctx.resources.huge_pages))
    needed = math.ceil(shared_memory_bytes(ctx.settings) / pool.page_bytes)
    state = State.OFF if pool.usable == 0 else State.PARTIAL if pool.usable < needed else State.ON
    return Detected(
        state,
        f"{pool.usable} pages of {numbers.size(pool.page_bytes)} are free or held by the server; it needs "
        f"{needed}",
    )


def plan(ctx: PlanContext) -> Planned:
    """Propose a pool that holds the planned shared memory."""
    pool = ctx.resources.huge_pages.or_none()
    if pool is None:
        return LEVER.skip(ctx.why_unknown(ctx.resources.huge_pages))
    if ctx.settings.text("huge_pages") == "off":
        return LEVER.skip("the server does not use huge pages: huge_pages is off")
    size_bytes, margin_bytes, how = _shared_memory(ctx)
    least, needed = (math.ceil(size / pool.page_bytes) for size in (size_bytes, size_bytes + margin_bytes))
    facts = (
        f"{numbers.size(size_bytes)} of shared memory ({how}) need {needed} pages of "
        f"{numbers.size(pool.page_bytes)}"
    )
    if pool.usable >= least:
        return LEVER.skip(f"{facts}; {pool.usable} are available")
    surplus = _possible_surplus(ctx, pool)
    if surplus and pool.usable + surplus >= least:
        return LEVER.skip(
            f"{facts}; {pool.usable} are available, and the kernel may add {surplus} surplus pages at the "
            "server's start (nr_overcommit_hugepages), if memory is not fragmented by then",
        )
    if obstacle := _obstacle(ctx, pool, size_bytes, needed):
        return LEVER.skip(f"{facts}; {obstacle}")
    path = f"{_directory(pool)}/nr_hugepages"
    reserved = int(ctx.value(path) or 0)
    line = LEVER.propose_file(
        ctx,
        path,
        str(reserved - pool.usable + needed),
        reason=f"{facts}, and {pool.usable} are available{_alternative(pool, needed)}",
        evidence='PostgreSQL manual, "Linux Huge Pages"; pgdyno pilot: ×1.08 read-only, ×1.10 read-write',
        effect=Effect.RESTART,  # a server allocates its pages at start
    )
    return LEVER.planned([line], facts)


def _directory(pool: HugePages) -> str:
    return f"{POOLS}/hugepages-{pool.page_bytes // KB}kB"


def _alternative(pool: HugePages, needed: int) -> str:
    """Return how to use surplus pages instead of reserved ones; empty for pages of 1 GB, which have none."""
    if pool.page_bytes >= GB:
        return ""
    return (
        f". To allocate them only while the server runs: echo {needed} > "
        f"{_directory(pool)}/nr_overcommit_hugepages, and start it while memory is not fragmented"
    )


def _possible_surplus(ctx: PlanContext, pool: HugePages) -> int:
    """Return the number of surplus pages that the kernel may still allocate."""
    allowed = int(ctx.value(f"{_directory(pool)}/nr_overcommit_hugepages") or 0)
    pools = {} if ctx.host is None else ctx.host.memory.huge_pages.or_else({})
    found = pools.get(pool.page_bytes)
    return max(allowed - found.surplus, 0) if found is not None else 0


def _shared_memory(ctx: PlanContext) -> tuple[int, int, str]:
    """Return the planned shared memory in bytes, its margin of error in bytes, and its source."""
    if ctx.probe is not None:
        probed = ctx.probe.shared_memory_bytes(ctx.settings.planned)
        if (known := probed.or_none()) is not None:
            return known, 0, probed.source
    estimate_bytes = shared_memory_bytes(ctx.settings)
    return estimate_bytes, int(estimate_bytes * ESTIMATE_MARGIN), "estimated, with a margin of 2 %"


def _obstacle(ctx: PlanContext, pool: HugePages, size_bytes: int, needed: int) -> str | None:
    if size_bytes < WORTH_RESERVING_BYTES:
        return "too little for page tables to matter"
    host = ctx.host
    available = None if host is None else host.memory.available_bytes.or_none()
    missing_bytes = (needed - pool.usable) * pool.page_bytes
    if available is not None and missing_bytes > AVAILABLE_SHARE * available:
        return (
            f"{numbers.size(missing_bytes)} are missing, but only {numbers.size(available)} of "
            "memory is available"
        )
    limits = None if host is None else host.limits.hugetlb_bytes.or_none()
    limit_bytes = (limits or {}).get(pool.page_bytes)
    if limit_bytes is not None and limit_bytes < size_bytes:
        return f"the server's control group is limited to {numbers.size(limit_bytes)} of them"
    return None
