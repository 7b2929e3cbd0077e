"""effective_io_concurrency: read-ahead depth matched to flash storage.

What it does:
    Sets effective_io_concurrency to 200 on storage that is known not to rotate, if the server's default
    is 1 (before 18). From 18 on the default 16 stays.

Why it helps:
    A bitmap heap scan requests many pages at once instead of one after the other; flash storage serves them
    in parallel.

When it hurts:
    Before 18 each request is a posix_fadvise system call, wasted for pages that are already cached.

How it is verified:
    pg_settings of the running server.

How it is undone:
    The value found is restored; requires a reload.

Evidence:
    The manual before 18: for flash the best value might be in the hundreds; pgtune uses 200. The developers
    chose the default of 18 from their measurements of asynchronous I/O.

References:
    https://www.postgresql.org/docs/17/runtime-config-resource.html#GUC-EFFECTIVE-IO-CONCURRENCY
    https://vondra.me/posts/tuning-aio-in-postgresql-18
"""

from __future__ import annotations

from pgdyno.plan.levers._contract import Layer, Lever, Need, PlanContext, Planned, Risk

FOR_FLASH = 200
MODERN_DEFAULT = 16

LEVER = Lever(
    name="effective_io_concurrency",
    title="read-ahead as deep as storage allows",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    settings=("effective_io_concurrency",),
    needs=(Need.STORAGE,),
    tried={"effective_io_concurrency": ("1", "16", "64", "256")},
)


def plan(ctx: PlanContext) -> Planned:
    """Raise it to a value that suits this server's read-ahead."""
    guc = ctx.settings.guc("effective_io_concurrency")
    found = int(ctx.settings.number("effective_io_concurrency"))
    if ctx.storage.is_rotational:
        return LEVER.skip(f"left at {found}: storage rotates")
    default = int(guc.boot_val or 0)
    target = default if default >= MODERN_DEFAULT else FOR_FLASH
    if found >= target:
        return LEVER.skip(f"{found} is at least {target}, the rule for {ctx.storage} on this server")
    line = LEVER.propose(
        ctx,
        "effective_io_concurrency",
        str(target),
        reason=f"storage is {ctx.storage}, which serves many reads in parallel",
        evidence='PostgreSQL manual, "effective_io_concurrency"; pgtune uses 200 for flash before 18 too',
    )
    return LEVER.planned([line], f"already {target}")
