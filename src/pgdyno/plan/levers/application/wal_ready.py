"""wal_ready: WAL segments available before they are needed (min_wal_size).

What it does:
    Raises min_wal_size to a quarter of max_wal_size: that much WAL is recycled instead of removed. The lever
    creates no segments: at each checkpoint the server keeps segments that its load has created.

Why it helps:
    The backend that fills the last segment creates the next one, writes 16 MB of zeros to it and flushes it,
    while all other writers wait: about 50 ms here. A recycled segment is only renamed.

When it hurts:
    The disk holds this much WAL even when little is written. A copy-on-write file system, such as ZFS or
    btrfs, writes a recycled segment to a new place anyway: there wal_recycle = off may be better.

How it is verified:
    pg_settings of the running server; new segments: writes of object wal, context init in pg_stat_io (18).

How it is undone:
    The value found is restored; requires a reload. The next checkpoints remove the files.

Evidence:
    The manual; pgtune keeps a quarter too. Without segments, 0.8 to 1.1 % of sysbench's read-write
    transactions took 40 to 60 ms here (docs/decisions/0028). Measured alone, against a variant with fewer
    segments than the default keeps (min_wal_size=32MB): missing segments cost 9.0 % of throughput (7.5 to
    10.5), and make the slowest 5 % twice as slow (+110 %, 99 to 123; docs/results).

References:
    https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-MIN-WAL-SIZE
    https://www.postgresql.org/docs/current/wal-configuration.html
    https://www.postgresql.org/docs/current/monitoring-stats.html#MONITORING-PG-STAT-IO-VIEW
"""

from __future__ import annotations

from pgdyno.base import numbers
from pgdyno.base.facts import Unknown
from pgdyno.plan.levers._contract import (
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    Planned,
    Risk,
    format_bytes,
)

KEPT = 4  # divisor: this part of max_wal_size is kept
FREE_DISK = 16  # divisor: at most this part of the free disk; max_wal_size takes at most a quarter

LEVER = Lever(
    name="wal_ready",
    title="WAL segments kept for reuse",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    maturity=Maturity.STABLE,
    settings=("min_wal_size",),
    needs=(Need.FREE_DISK,),
    order_after={"max_wal_size": "it is a share of that setting"},
    shows_late=True,
)


def plan(ctx: PlanContext) -> Planned:
    """Keep a quarter of max_wal_size, if the disk has room and less is kept now."""
    size_bytes = ctx.settings.size_bytes("max_wal_size") // KEPT
    found = ctx.settings.display("min_wal_size")
    if size_bytes <= ctx.settings.size_bytes("min_wal_size"):
        return LEVER.skip(f"{found} is a quarter of max_wal_size or more")
    if size_bytes > ctx.free_disk_bytes // FREE_DISK:
        size, free = numbers.size(size_bytes), numbers.size(ctx.free_disk_bytes)
        return LEVER.skip(f"left at {found}: {size} is more than 1/16 of the free disk, {free}")
    line = LEVER.propose(
        ctx,
        "min_wal_size",
        format_bytes(size_bytes),
        reason=f"a quarter of max_wal_size is kept for reuse, so bursts create no segments; {_made(ctx)}",
        evidence='PostgreSQL manual, "min_wal_size"; pgtune keeps a quarter too',
    )
    return LEVER.planned([line], f"already {found}")


def _made(ctx: PlanContext) -> str:
    made = ctx.server.wal_segments_made.value
    if isinstance(made, Unknown):
        return f"the number created so far is not known ({made.reason})"
    return f"the server has created {made} since its statistics were reset (pg_stat_io)"
