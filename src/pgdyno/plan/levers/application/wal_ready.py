"""wal_ready: WAL segments that are there before they are needed (min_wal_size).

What it does:
    Raises min_wal_size to a quarter of max_wal_size: so much WAL is kept for reuse instead of removed. It
    makes no segments and fills none: a server keeps those that its load has made, checkpoint by checkpoint.

Why it helps:
    Who fills the last segment makes the next one, writes 16 MB of zeros into it and flushes it, and all
    others who write wait: about 50 ms here. A segment that is kept is renamed instead.

When it hurts:
    The disk holds so much WAL also when little is written. A file system that copies on write, as ZFS and
    btrfs do, writes a kept segment elsewhere anyhow: there wal_recycle = off may be better.

How it is verified:
    pg_settings of the running server; segments made: writes of object wal, context init in pg_stat_io (18).

How it is undone:
    The value found is restored; takes a reload. The files go at the next checkpoints.

Evidence:
    The manual; pgtune keeps a quarter too. Without segments, 0.8 to 1.1 % of sysbench's read-write
    transactions took 40 to 60 ms here (docs/decisions/0028). By itself, against a variant that is given fewer
    segments than the default keeps (min_wal_size=32MB): missing segments cost 9.0 % of throughput (7.5 to
    10.5), and make the slowest 5 % twice as slow (+110 %, 99 to 123; docs/results).

References:
    https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-MIN-WAL-SIZE
    https://www.postgresql.org/docs/current/wal-configuration.html
    https://www.postgresql.org/docs/current/monitoring-stats.html#MONITORING-PG-STAT-IO-VIEW
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.base import numbers
from pgdyno.base.facts import Unknown
from pgdyno.plan.levers._contract import (
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    PlanLine,
    Risk,
    Skipped,
    detect_settings,
    format_bytes,
    lines_or_skipped,
    propose,
)

KEPT = 4  # the part of max_wal_size that is kept, as a divisor
FREE_DISK = 16  # of the free disk so much at most, as a divisor: max_wal_size takes a quarter of it at most

LEVER = Lever(
    name="wal_ready",
    title="WAL segments kept for reuse",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    maturity=Maturity.STABLE,
    settings=("min_wal_size",),
    needs=(Need.FREE_DISK,),
    order_after={"max_wal_size": "it is a part of that"},
    shows_late=True,
)

detect = detect_settings(LEVER)


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Keep a quarter of max_wal_size, if the disk has room and less is kept now."""
    size_bytes = ctx.settings.size_bytes("max_wal_size") // KEPT
    found = ctx.settings.display("min_wal_size")
    if size_bytes <= ctx.settings.size_bytes("min_wal_size"):
        return Skipped(LEVER.name, f"{found} is a quarter of max_wal_size or more")
    if size_bytes > ctx.free_disk_bytes // FREE_DISK:
        size, free = numbers.size(size_bytes), numbers.size(ctx.free_disk_bytes)
        return Skipped(LEVER.name, f"{found} stays: {size} is more than a sixteenth of the free disk, {free}")
    line = propose(
        ctx,
        LEVER,
        "min_wal_size",
        format_bytes(size_bytes),
        reason=f"a quarter of max_wal_size stays ready for reuse, so that bursts need not make files; "
        f"{_made(ctx)}",
        evidence='PostgreSQL manual, "min_wal_size"; pgtune keeps a quarter too',
    )
    return lines_or_skipped(LEVER, [line], f"already {found}")


def _made(ctx: PlanContext) -> str:
    made = ctx.server.wal_segments_made.value
    if isinstance(made, Unknown):
        return f"how many were made is not known ({made.reason})"
    return f"the server has made {made} since its statistics were reset (pg_stat_io)"
