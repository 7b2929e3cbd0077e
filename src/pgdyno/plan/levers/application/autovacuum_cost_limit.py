"""autovacuum_vacuum_cost_limit: autovacuum fast enough for the amount of data.

What it does:
    Raises the cost limit so that autovacuum can dirty every page of the data once in 30 minutes, at most
    to 2000, on storage that is known not to rotate. Never enables or disables autovacuum.

Why it helps:
    The default cost limit allows all workers together to dirty 40 MB/s. On hundreds of gigabytes a pass takes
    hours, during which dead rows accumulate and slow down every scan.

When it hurts:
    Vacuum takes more of the storage's bandwidth while it runs.

How it is verified:
    pg_settings of the running server; n_dead_tup in pg_stat_user_tables.

How it is undone:
    The value found is restored; requires a reload.

Evidence:
    The manual's cost model: limit / page cost × 8 kB per delay. Arithmetic, not yet measured by pgdyno.

References:
    https://www.postgresql.org/docs/current/runtime-config-vacuum.html#RUNTIME-CONFIG-RESOURCE-VACUUM-COST
"""

from __future__ import annotations

from pgdyno.base import numbers
from pgdyno.plan.levers._contract import KB, Layer, Lever, Need, PlanContext, Planned, Risk

PASS_S = 30 * 60
STEP, CAP = 100, 2000  # the cap allows 400 MB/s of dirtied pages, more than most volumes sustain
PAGE_BYTES = 8 * KB

LEVER = Lever(
    name="autovacuum_cost_limit",
    title="autovacuum's throttle matched to the data",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    settings=("autovacuum_vacuum_cost_limit",),
    needs=(Need.STORAGE, Need.DATA_SIZE),
    shows_late=True,
)


def plan(ctx: PlanContext) -> Planned:
    """Raise the limit so that a pass over all data takes at most half an hour."""
    if ctx.storage.is_rotational:
        return LEVER.skip("storage rotates: vacuum would compete with the queries for it")
    own_delay_ms = ctx.settings.number("autovacuum_vacuum_cost_delay")
    delay_s = (own_delay_ms if own_delay_ms >= 0 else ctx.settings.number("vacuum_cost_delay")) / 1000
    if delay_s <= 0:
        return LEVER.skip("autovacuum is not throttled")
    page_cost = ctx.settings.number("vacuum_cost_page_dirty")
    if page_cost <= 0:
        return LEVER.skip("autovacuum is not throttled for dirtied pages (vacuum_cost_page_dirty)")
    limit = _limit(ctx)
    bytes_per_s = limit / page_cost * PAGE_BYTES / delay_s
    pass_s = ctx.data_bytes / bytes_per_s
    rate, data = numbers.size(int(bytes_per_s)), numbers.size(ctx.data_bytes)
    facts = f"at {rate}/s a pass over {data} takes {pass_s / 60:.1f} min"
    target = min(int(limit * pass_s / PASS_S) // STEP * STEP, CAP)
    if target <= limit:
        return LEVER.skip(f"autovacuum keeps up: {facts}")
    line = LEVER.propose(
        ctx,
        "autovacuum_vacuum_cost_limit",
        str(target),
        reason=facts,
        evidence='PostgreSQL manual, "Cost-based Vacuum Delay"',
    )
    return LEVER.planned([line], facts)


def _limit(ctx: PlanContext) -> float:
    """Return autovacuum's limit; -1 and 0 both mean VACUUM's (autovacuum.c)."""
    own = ctx.settings.number("autovacuum_vacuum_cost_limit")
    return own if own > 0 else ctx.settings.number("vacuum_cost_limit")
