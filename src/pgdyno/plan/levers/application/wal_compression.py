"""wal_compression: full-page images compressed with LZ4, where sampled pages show that it pays.

What it does:
    Sets wal_compression to lz4 if the server lists it (15 and later, built with LZ4), and LZ4 saves more
    time of writing than it takes. That is measured on 64 pages from all over the tables and indexes of the
    server's data directory. pglz is never proposed.

Why it helps:
    After a checkpoint most of the WAL is images of whole pages. Smaller images mean less to write and sync,
    to archive and to replicate, and checkpoints forced by size come later.

When it hurts:
    Where data do not compress: random digits, or what is compressed already. Where the CPU is the limit and
    other sessions use the time of the writing, compression costs more than is reckoned here. pglz takes many
    times more: a configuration with pglz and more frequent checkpoints halved read-write throughput in
    pgdyno's pilot.

How it is verified:
    pg_settings of the running server; WAL bytes per full-page image in pg_stat_wal.

How it is undone:
    The value found is restored; takes a reload. WAL already written stays readable.

Evidence:
    The server's own pages, compressed by the machine's liblz4, and bytes written and flushed on the disk of
    the WAL; what the server itself does for a byte, copying and checksums, is not counted. Of sysbench's
    tables pages become 21 % smaller here, which takes 14 µs each, and writing what is saved takes 1.4 µs; of
    repeated text 94 %, 2 µs and 7 µs. There lz4 costs sysbench read-write 6.3 % of throughput (3.9 to 8.7; as
    booted 7.1 %, 3.8 to 10.3), 4 clients (docs/results). Callaghan's Insert Benchmark on 15: lz4 and zstd are
    a big improvement over pglz. Pryzby: lz4 as fast as no compression, writing about 60 % as much.

References:
    https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-WAL-COMPRESSION
    https://smalldatum.blogspot.com/2022/05/the-benefit-of-lz4-and-zstd-for.html
    https://www.postgresql.org/message-id/20210614012412.GA31772%40telsasoft.com
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.base import numbers
from pgdyno.base.facts import Unknown
from pgdyno.host.probes import LZ4, PageCompression
from pgdyno.plan.levers._contract import (
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
)

LEVER = Lever(
    name="wal_compression",
    title="WAL compressed with LZ4",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    maturity=Maturity.PREVIEW,
    settings=("wal_compression",),
    tried={"wal_compression": ("off", "pglz", "lz4", "zstd")},
)

detect = detect_settings(LEVER)


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Propose LZ4 where it exists and pays; leave an explicit zstd alone."""
    if (obstacle := _obstacle(ctx)) is not None:
        return Skipped(LEVER.name, obstacle)
    pages = _pages(ctx)
    if isinstance(pages, Unknown):
        return Skipped(LEVER.name, f"whether it pays is not known: {pages.reason}")
    if pages.saved_us <= pages.compression_us:
        return Skipped(LEVER.name, f"not worth it: {_measured(pages)}")
    line = propose(
        ctx,
        LEVER,
        "wal_compression",
        LZ4,
        reason=_measured(pages),
        evidence="sampled pages of this server; smalldatum.blogspot.com, 2022-05: Insert Benchmark with lz4, "
        "zstd, pglz and none",
    )
    return lines_or_skipped(LEVER, [line], f"already {LZ4}")


def _obstacle(ctx: PlanContext) -> str | None:
    """Return why compression is left alone whatever the pages are."""
    guc = ctx.settings.guc("wal_compression")
    found = ctx.settings.text("wal_compression")
    if LZ4 not in guc.enumvals:
        return f"left at {found}: this build has no {LZ4}, and pglz costs more than it saves"
    if found == "zstd":
        return "zstd was chosen, which compresses better for more CPU"
    return f"already {found}" if guc.equals(LZ4) else None


def _pages(ctx: PlanContext) -> PageCompression | Unknown:
    if ctx.probe is None:
        return Unknown("the server's programs are not accessible")
    return ctx.probe.page_compression().value


def _measured(pages: PageCompression) -> str:
    return (
        f"{pages.pages} sampled pages become "
        f"{numbers.share(1 - pages.compressed_bytes / pages.image_bytes, 0)} smaller, which takes "
        f"{pages.compression_us:.1f} µs each; writing what is saved takes {pages.saved_us:.1f} µs"
    )
