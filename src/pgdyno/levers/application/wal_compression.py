"""wal_compression: full-page images compressed with LZ4, where the build has it.

What it does:
    Sets wal_compression to lz4 if the server lists it (15 and later, built with LZ4). pglz is never
    proposed.

Why it helps:
    After a checkpoint most of the WAL is images of whole pages. Smaller images mean less to write and sync,
    to archive and to replicate, and checkpoints forced by size come later.

When it hurts:
    Some CPU per image. pglz takes many times more: a configuration with pglz and more frequent checkpoints
    halved read-write throughput in pgdyno's pilot.

How it is verified:
    pg_settings of the running server; WAL bytes per full-page image in pg_stat_wal.

How it is undone:
    The value found is restored; takes a reload. WAL already written stays readable.

Evidence:
    Callaghan's Insert Benchmark on 15: lz4 and zstd are a big improvement over pglz. Pryzby: lz4 as fast as
    no compression, writing about 60 % as much.

References:
    https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-WAL-COMPRESSION
    https://smalldatum.blogspot.com/2022/05/the-benefit-of-lz4-and-zstd-for.html
    https://www.postgresql.org/message-id/20210614012412.GA31772%40telsasoft.com
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.levers._contract import (
    Layer,
    Lever,
    Maturity,
    PlanContext,
    PlanLine,
    Risk,
    Skipped,
    detect_settings,
    lines_or_skipped,
    propose,
    verify_settings,
)

CHOICE = "lz4"

LEVER = Lever(
    name="wal_compression",
    title="WAL compressed with LZ4",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    maturity=Maturity.PREVIEW,
    settings=("wal_compression",),
)

detect = detect_settings(LEVER)
verify = verify_settings(LEVER)


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Propose LZ4 where it exists; leave zstd to whoever chose it."""
    guc = ctx.settings.guc("wal_compression")
    found = ctx.settings.text("wal_compression")
    if CHOICE not in guc.enumvals:
        reason = f"left at {found}: this build has no {CHOICE}, and pglz costs more than it saves"
        return Skipped(LEVER.name, reason)
    if found == "zstd":
        return Skipped(LEVER.name, "zstd was chosen, which compresses better for more CPU")
    line = propose(
        ctx,
        LEVER,
        "wal_compression",
        CHOICE,
        reason="less WAL after each checkpoint for little CPU; this build lists lz4",
        evidence="smalldatum.blogspot.com, 2022-05: Insert Benchmark with lz4, zstd, pglz and none",
    )
    return lines_or_skipped(LEVER, [line], f"already {found}")
