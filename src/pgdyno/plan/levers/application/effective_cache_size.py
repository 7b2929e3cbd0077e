"""effective_cache_size: the planner's estimate of cached data.

What it does:
    Sets the planner's estimate of cached data to three quarters of the memory limit. Allocates nothing.

Why it helps:
    With the default 4 GB on a larger machine the planner assumes that repeated index reads go to storage,
    and prefers sequential scans.

When it hurts:
    If other programs on the machine use the memory: then state --ram.

How it is verified:
    pg_settings of the running server.

How it is undone:
    The value found is restored; requires a reload.

Evidence:
    The manual's definition; pgtune and timescaledb-tune use three quarters too.

References:
    https://www.postgresql.org/docs/current/runtime-config-query.html#GUC-EFFECTIVE-CACHE-SIZE
"""

from __future__ import annotations

from pgdyno.base import numbers
from pgdyno.plan.levers._contract import (
    MB,
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    Planned,
    Risk,
    format_bytes,
)

SHARE = 0.75
STEP_BYTES = 64 * MB

LEVER = Lever(
    name="effective_cache_size",
    title="estimate of cached data matched to memory",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    maturity=Maturity.STABLE,
    settings=("effective_cache_size",),
    needs=(Need.MEMORY,),
    tried={"effective_cache_size": (0.25,)},
)


def plan(ctx: PlanContext) -> Planned:
    """Raise it to the rule; lower it only if it exceeds the memory limit."""
    found_bytes = ctx.settings.size_bytes("effective_cache_size")
    target_bytes = int(ctx.memory_bytes * SHARE) // STEP_BYTES * STEP_BYTES
    limit = numbers.size(ctx.memory_bytes)
    reason = f"75 % of {limit}, for the buffer pool and the kernel's cache together"
    if target_bytes < found_bytes:
        if found_bytes <= ctx.memory_bytes:
            return LEVER.skip(f"the present value is not below {reason}")
        reason += "; the present value exceeds the memory, so the planner assumes a cache that does not exist"
    line = LEVER.propose(
        ctx,
        "effective_cache_size",
        format_bytes(max(target_bytes, STEP_BYTES)),
        reason=reason,
        evidence='PostgreSQL manual, "effective_cache_size"; pgtune and timescaledb-tune use the same rule',
    )
    return LEVER.planned([line], f"already {reason}")
