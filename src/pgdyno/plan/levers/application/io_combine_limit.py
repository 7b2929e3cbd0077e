"""io_max_combine_limit: makes a raised io_combine_limit effective.

What it does:
    If io_combine_limit is above io_max_combine_limit (18 and later), raises the latter to the former, because
    the server silently uses the smaller of the two. The defaults (128 kB both) are left unchanged.

Why it helps:
    The configured larger reads otherwise have no effect.

When it hurts:
    It takes slightly more shared memory, for the descriptors of reads in progress.

How it is verified:
    pg_settings of the running server.

How it is undone:
    The value found is restored; requires a restart.

Evidence:
    The manual: io_max_combine_limit silently limits io_combine_limit. No published evidence favours sizes
    other than the defaults; Vondra advises against changing them.

References:
    https://www.postgresql.org/docs/current/runtime-config-resource.html#GUC-IO-MAX-COMBINE-LIMIT
    https://vondra.me/posts/tuning-aio-in-postgresql-18
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, Maturity, PlanContext, Planned, Risk

LEVER = Lever(
    name="io_combine_limit",
    title="a raised read size made effective",
    layer=Layer.APPLICATION,
    risk=Risk.RESTART,
    maturity=Maturity.STABLE,
    settings=("io_max_combine_limit",),
)


def plan(ctx: PlanContext) -> Planned:
    """Raise the limit only to an explicitly requested size."""
    wanted, limit = ctx.settings.display("io_combine_limit"), ctx.settings.display("io_max_combine_limit")
    if ctx.settings.number("io_combine_limit") <= ctx.settings.number("io_max_combine_limit"):
        return LEVER.skip(f"reads of up to {wanted} are in effect; no evidence favours other sizes")
    line = LEVER.propose(
        ctx,
        "io_max_combine_limit",
        wanted,
        reason=f"io_combine_limit is {wanted}, but reads are silently limited to {limit}",
        evidence='PostgreSQL manual, "io_max_combine_limit"',
    )
    return LEVER.planned([line], f"already {wanted}")
