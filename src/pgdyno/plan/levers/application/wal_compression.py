"""wal_compression: full-page images compressed with LZ4, if a sample of pages shows a net gain.

What it does:
    Sets wal_compression to lz4 if the server lists it (15 and later, built with LZ4), and LZ4 saves more
    write time than the compression takes. This is measured on 64 pages sampled from all tables and indexes
    of the server's data directory. pglz is never proposed.

Why it helps:
    After a checkpoint most of the WAL is full-page images. Smaller images mean less to write, sync, archive
    and replicate, and checkpoints forced by size come later.

When it hurts:
    With incompressible data, such as random digits or already compressed values. If the CPU is the bottleneck
    and other sessions can use the time of the writes, compression costs more than estimated here. pglz takes
    many times more CPU: a configuration with pglz and more frequent checkpoints halved read-write throughput
    in pgdyno's pilot.

How it is verified:
    pg_settings of the running server; WAL bytes per full-page image in pg_stat_wal.

How it is undone:
    The value found is restored; requires a reload. WAL already written stays readable.

Evidence:
    The server's pages, compressed by the machine's liblz4, and bytes written and flushed to the disk of the
    WAL. The server's own work per byte, copying and checksums, is not counted. Pages of sysbench's tables
    shrink by 21 % here, which takes 14 µs each; writing the saved bytes would take 1.4 µs. Pages of repeated
    text shrink by 94 %, with 2 µs and 7 µs. lz4 costs sysbench read-write 6.3 % of throughput (3.9 to 8.7; as
    booted 7.1 %, 3.8 to 10.3), 4 clients (docs/results). Callaghan's Insert Benchmark on 15: lz4 and zstd are
    a big improvement over pglz. Pryzby: lz4 as fast as no compression, writing about 60 % as much.

References:
    https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-WAL-COMPRESSION
    https://smalldatum.blogspot.com/2022/05/the-benefit-of-lz4-and-zstd-for.html
    https://www.postgresql.org/message-id/20210614012412.GA31772%40telsasoft.com
"""

from __future__ import annotations

from pgdyno.base import numbers
from pgdyno.base.facts import Unknown
from pgdyno.host.probes import LZ4, PageCompression
from pgdyno.plan.levers._contract import Layer, Lever, PlanContext, Planned, Risk

LEVER = Lever(
    name="wal_compression",
    title="WAL compressed with LZ4",
    layer=Layer.APPLICATION,
    risk=Risk.SAFE,
    settings=("wal_compression",),
    tried={"wal_compression": ("off", "pglz", "lz4", "zstd")},
)


def plan(ctx: PlanContext) -> Planned:
    """Propose LZ4 if it is available and pays off; leave an explicit zstd unchanged."""
    if (obstacle := _obstacle(ctx)) is not None:
        return LEVER.skip(obstacle)
    pages = _pages(ctx)
    if isinstance(pages, Unknown):
        return LEVER.skip(f"the benefit is not known: {pages.reason}")
    if pages.saved_us <= pages.compression_us:
        return LEVER.skip(f"not worthwhile: {_measured(pages)}")
    line = LEVER.propose(
        ctx,
        "wal_compression",
        LZ4,
        reason=_measured(pages),
        evidence="sampled pages of this server; smalldatum.blogspot.com, 2022-05: Insert Benchmark with lz4, "
        "zstd, pglz and none",
    )
    return LEVER.planned([line], f"already {LZ4}")


def _obstacle(ctx: PlanContext) -> str | None:
    """Return why compression is left unchanged regardless of the pages; None if the pages decide."""
    guc = ctx.settings.guc("wal_compression")
    found = ctx.settings.text("wal_compression")
    if LZ4 not in guc.enumvals:
        return f"left at {found}: this build has no {LZ4}, and pglz costs more than it saves"
    if found == "zstd":
        return "explicitly set to zstd, which compresses better for more CPU"
    return f"already {found}" if guc.equals(LZ4) else None


def _pages(ctx: PlanContext) -> PageCompression | Unknown:
    if ctx.probe is None:
        return Unknown("the server's programs are not accessible")
    return ctx.probe.page_compression().value


def _measured(pages: PageCompression) -> str:
    return (
        f"{pages.pages} sampled pages shrink by "
        f"{numbers.share(1 - pages.compressed_bytes / pages.image_bytes, 0)}, which takes "
        f"{pages.compression_us:.1f} µs each; writing the saved bytes takes {pages.saved_us:.1f} µs"
    )
