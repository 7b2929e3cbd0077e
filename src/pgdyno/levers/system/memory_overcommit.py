"""memory_overcommit: whether the kernel promises more memory than there is.

What it does:
    Reports what strict accounting (vm.overcommit_memory = 2) would mean on this machine. It changes nothing.

Why it helps:
    With strict accounting a backend that asks for too much gets the error "out of memory" and the server goes
    on. Without it the kernel kills a process when memory runs out, and if that is a backend, the server
    restarts all of them. It is about stability: nothing becomes faster.

When it hurts:
    What programs reserve counts, whether they use it or not, and the limit is half of the memory as the
    kernel is installed (vm.overcommit_ratio = 50). Programs that reserve much and use little fail to start.
    That is why it is never proposed: only who knows all programs of a machine can say that it is safe.

How it is verified:
    CommitLimit and Committed_AS in /proc/meminfo.

How it is undone:
    There is nothing to undo. By hand: the value found is written back.

Evidence:
    PostgreSQL's manual calls it the more robust of the two. No throughput is promised.

References:
    https://www.postgresql.org/docs/current/kernel-resources.html#LINUX-MEMORY-OVERCOMMIT
    https://docs.kernel.org/mm/overcommit-accounting.html
"""

from __future__ import annotations

from pgdyno.levers._contract import (
    KB,
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    Risk,
    Skipped,
    detect_report,
    sysctl_path,
    verify_files,
)
from pgdyno.model import numbers

POLICY = sysctl_path("vm.overcommit_memory")
LIMIT_KB, LIMIT_PERCENT = sysctl_path("vm.overcommit_kbytes"), sysctl_path("vm.overcommit_ratio")
STRICT = "2"

LEVER = Lever(
    name="memory_overcommit",
    title="no more memory promised than there is",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    reads=(POLICY, LIMIT_KB, LIMIT_PERCENT),
    needs=(Need.MEMORY,),
    order_after={"work_mem": "the server's worst case is compared with the limit"},
)


def plan(ctx: PlanContext) -> Skipped:
    """Compare the memory that can be reserved with the server's worst case."""
    if _is_in_use(ctx):
        return Skipped(
            LEVER.name, "strict already (vm.overcommit_memory = 2): an allocation above the limit is an error"
        )
    left = f"vm.overcommit_memory stays at {ctx.value(POLICY)}: 2 is about stability, not speed"
    limit_bytes, proof = _limit_bytes(ctx), ctx.proof()
    if not limit_bytes or proof is None:
        return Skipped(LEVER.name, left)
    fits = "which would fit" if proof.total_bytes <= limit_bytes else "which would not fit"
    return Skipped(
        LEVER.name,
        f"{left}. All programs together could then reserve {numbers.size(limit_bytes)} and the swap space; "
        f"this server alone takes {numbers.size(proof.total_bytes)} at worst, {fits}",
    )


def _limit_bytes(ctx: PlanContext) -> int:
    """Return the reservable memory besides swap; huge pages do not count on either side.

    0 means that the kernel does not tell.
    """
    limit_bytes = int(ctx.value(LIMIT_KB) or 0) * KB
    percent = int(ctx.value(LIMIT_PERCENT) or 0)
    return limit_bytes or _ordinary_memory_bytes(ctx) * percent // 100


def _ordinary_memory_bytes(ctx: PlanContext) -> int:
    if ctx.host is None:
        return ctx.memory_bytes
    memory = ctx.host.memory
    pools = memory.huge_pages.or_else({})
    reserved_bytes = sum(pool.total * page_bytes for page_bytes, pool in pools.items())
    return memory.total_bytes.or_else(ctx.memory_bytes) - reserved_bytes


def _is_in_use(ctx: PlanContext) -> bool:
    return ctx.value(POLICY) == STRICT


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
