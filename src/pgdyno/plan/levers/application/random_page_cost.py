"""random_page_cost: the cost of random reads from flash storage or cached data.

What it does:
    Sets random_page_cost to 1.1 if storage is known not to rotate, or if the data is known to fit into half
    of the memory, regardless of the storage.

Why it helps:
    The default 4 is the cost of a seek on a partly cached disk. On flash, or in memory, it makes the planner
    avoid index scans that would be faster.

When it hurts:
    On rotating disks with data larger than memory. Plans change: some queries become several times faster,
    most do not change, a few may become slower.

How it is verified:
    pg_settings of the running server, and EXPLAIN of the important queries.

How it is undone:
    The value found is restored; requires a reload.

Evidence:
    The manual: a lower value for storage with cheap random reads, and where the data is likely to be
    cached. A production dump: 2 of 6 queries four times faster, 4 unchanged.

References:
    https://www.postgresql.org/docs/current/runtime-config-query.html#GUC-RANDOM-PAGE-COST
    https://github.com/fleetyards/fleetyards/pull/4794
"""

from __future__ import annotations

from pgdyno.base import numbers
from pgdyno.plan.levers._contract import Layer, Lever, Maturity, PlanContext, Planned, Risk, Skipped

CHEAP = "1.1"
ALREADY_CHEAP = 2.0  # values up to this were chosen for flash storage, and pgdyno leaves that choice
CACHED_SHARE = 0.5  # data up to this share of memory stays cached along with everything else

LEVER = Lever(
    name="random_page_cost",
    title="cost of random reads matched to flash or memory",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    maturity=Maturity.STABLE,
    settings=("random_page_cost",),
    tried={"random_page_cost": ("1.1", "2", "4")},
)


def plan(ctx: PlanContext) -> Planned:
    """Lower it only for a known reason."""
    if ctx.settings.number("random_page_cost") <= ALREADY_CHEAP:
        return LEVER.skip(f"{ctx.settings.text('random_page_cost')} is already low")
    reason = _reason(ctx)
    if isinstance(reason, Skipped):
        return reason
    line = LEVER.propose(
        ctx,
        "random_page_cost",
        CHEAP,
        reason=reason,
        evidence='PostgreSQL manual, "random_page_cost"; pgtune and timescaledb-tune use 1.1 too',
    )
    return LEVER.planned([line], reason)


def _reason(ctx: PlanContext) -> str | Skipped:
    storage = ctx.resources.storage.or_none()
    if storage is not None and not storage.is_rotational:
        return f"storage is {storage}, where a random read costs little more than a sequential one"
    data_bytes, memory_bytes = ctx.resources.data_bytes.or_none(), ctx.resources.memory_bytes.or_none()
    if data_bytes is None or memory_bytes is None or data_bytes > CACHED_SHARE * memory_bytes:
        if storage is not None:
            return LEVER.skip("storage rotates, and the data is not known to fit into memory")
        return LEVER.skip(ctx.why_unknown(ctx.resources.storage))
    return f"{numbers.size(data_bytes)} of data stay cached in {numbers.size(memory_bytes)} of memory"
