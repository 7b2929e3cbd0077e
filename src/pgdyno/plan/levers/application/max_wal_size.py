"""max_wal_size: enough WAL for checkpoints triggered by time, not by size.

What it does:
    Sizes max_wal_size to the WAL written between two timed checkpoints: 3 MB/s per CPU, plus every page in
    shared_buffers once; rounded up to a power of two, at most 64 GB and at most a quarter of the free disk.

Why it helps:
    The default 1 GB is full after seconds of heavy writing; then a checkpoint is forced, and full-page
    images are written again.

When it hurts:
    The disk holds more WAL, and crash recovery may have to replay about half of max_wal_size. It is a soft
    limit: replication slots and archiving failures can exceed it. If pg_wal is on a separate file system, the
    smaller free space of the two counts.

How it is verified:
    pg_settings of the running server; requested checkpoints stop in pg_stat_checkpointer
    (pg_stat_bgwriter before 17).

How it is undone:
    The value found is restored; requires a reload. The next checkpoints remove the files.

Evidence:
    The manual's arithmetic of checkpoints. 3 MB/s per CPU is twice what sysbench read-write wrote per CPU on
    pgdyno's development machine (0.9 to 1.6 MB/s without full-page images). pgdyno pilot: pgtune's
    configuration, 8 GB and a larger buffer pool, gave ×1.18 on sysbench read-write.

References:
    https://www.postgresql.org/docs/current/wal-configuration.html
    https://github.com/le0pard/pgtune/issues/35
    https://www.pgedge.com/blog/checkpoints-write-storms-and-you
"""

from __future__ import annotations

from pgdyno.base import numbers
from pgdyno.plan.levers._contract import (
    GB,
    MB,
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    PlanLine,
    Planned,
    Risk,
    format_bytes,
)

WAL_BYTES_PER_CPU_S = 3 * MB
CAP_BYTES = 64 * GB
FREE_DISK_SHARE = 0.25

LEVER = Lever(
    name="max_wal_size",
    title="room for WAL between checkpoints",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    maturity=Maturity.STABLE,
    settings=("max_wal_size",),
    needs=(Need.CPUS, Need.FREE_DISK),
    order_after={
        "checkpoint_timeout": "WAL is sized for the time between two checkpoints",
        "shared_buffers": "its pages are written in full after a checkpoint",
    },
    shows_late=True,
)


def plan(ctx: PlanContext) -> Planned:
    """Raise it to the size needed between timed checkpoints, as far as the disk allows."""
    found_bytes = ctx.settings.size_bytes("max_wal_size")
    needed_bytes = _needed_bytes(ctx)
    target_bytes = _allowed_bytes(ctx, needed_bytes)
    free = numbers.size(ctx.free_disk_bytes)
    lines = [_line(ctx, target_bytes, needed_bytes)] if target_bytes > found_bytes else []
    found = ctx.settings.display("max_wal_size")
    return LEVER.planned(lines, f"{found} is at least the rule's value, with {free} of free disk")


def _line(ctx: PlanContext, size_bytes: int, needed_bytes: int) -> PlanLine | None:
    timeout = ctx.settings.display("checkpoint_timeout")
    replay_bytes = int(size_bytes / _segments_kept(ctx))
    disk = f"a quarter of {numbers.size(ctx.free_disk_bytes)} of free disk"
    return LEVER.propose(
        ctx,
        "max_wal_size",
        format_bytes(size_bytes),
        reason=f"{ctx.cpu_count:g} CPUs writing for {timeout} need about {numbers.size(needed_bytes)}; at "
        f"most {numbers.size(CAP_BYTES)} and {disk}. Crash recovery replays at most about "
        f"{numbers.size(replay_bytes)}",
        evidence='PostgreSQL manual, "WAL Configuration"; pgdyno pilot: 8 GB with a larger buffer pool gave '
        "×1.18 on sysbench read-write",
    )


def _needed_bytes(ctx: PlanContext) -> int:
    """Return the size with which the timed checkpoint comes before a forced one.

    A checkpoint is forced when the WAL since the last one reaches max_wal_size / (1 + completion target):
    the last two cycles must fit (manual, "WAL Configuration"; xlog.c, CalculateCheckpointSegments).
    """
    written_bytes = WAL_BYTES_PER_CPU_S * ctx.cpu_count * ctx.settings.number("checkpoint_timeout")
    pool_bytes = ctx.settings.size_bytes("shared_buffers")
    whole_pages_bytes = min(ctx.resources.data_bytes.or_else(pool_bytes), pool_bytes)
    return int((written_bytes + whole_pages_bytes) * _segments_kept(ctx))


def _segments_kept(ctx: PlanContext) -> float:
    return 1 + ctx.settings.number("checkpoint_completion_target")


def _allowed_bytes(ctx: PlanContext, needed_bytes: int) -> int:
    """Return the size rounded up to a power of two, then halved until it fits the disk."""
    size_bytes = GB
    while size_bytes < min(needed_bytes, CAP_BYTES):
        size_bytes *= 2
    while size_bytes > ctx.free_disk_bytes * FREE_DISK_SHARE and size_bytes > MB:
        size_bytes //= 2
    return size_bytes
