"""read_ahead: reads that look sequential do not fetch megabytes of unneeded data.

What it does:
    Lowers the read-ahead of the data directory's disk to 128 kB, the kernel's own default, where it is more
    than 1 MB and the data do not fit into memory.

Why it helps:
    The kernel reads ahead as soon as a few reads of a file look like a sequence, which the pages of an index
    scan often do. At 8 MB each such guess reads up to a thousand pages and throws as many out of the cache.

When it hurts:
    Scans of large tables, dumps and backups on disks that answer slowly. From 18 on PostgreSQL reads ahead
    itself (io_method, effective_io_concurrency) and depends less on the kernel's.

How it is verified:
    The kernel's value, read anew.

How it is undone:
    The value found is written back.

Evidence:
    The rule is argued; not measured by pgdyno yet. TuneD's profile hpc-compute raises it, to 4 MB, for large
    files that are read in order.

References:
    https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-block
    https://www.postgresql.org/docs/current/runtime-config-resource.html#GUC-EFFECTIVE-IO-CONCURRENCY
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.base import numbers
from pgdyno.plan.levers._contract import (
    KB,
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    PlanLine,
    Risk,
    Skipped,
    detect_files,
    lines_or_skipped,
    propose_file,
)

READ_AHEADS = "/sys/block/*/queue/read_ahead_kb"
DEFAULT_KB = 128  # Linux, include/linux/pagemap.h: VM_READAHEAD_PAGES
TOLERATED_KB = 1024  # arbitrary: what providers' images set without thinking of databases is above

LEVER = Lever(
    name="read_ahead",
    title="read-ahead for random reads",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    files=(READ_AHEADS,),
    needs=(Need.DISKS, Need.MEMORY, Need.DATA_SIZE),
)


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Propose the kernel's default where more is read ahead and the cache cannot hold all data."""
    disk, path = ctx.disks[0].name, _path(ctx)
    found = ctx.value(path)
    if found is None:
        return Skipped(LEVER.name, f"{disk} does not say how much is read ahead")
    facts = f"up to {numbers.size(int(found) * KB)} are read ahead on {disk}"
    if int(found) <= TOLERATED_KB:
        return Skipped(LEVER.name, facts)
    sizes = f"{numbers.size(ctx.data_bytes)} of data and {numbers.size(ctx.memory_bytes)} of memory"
    if ctx.data_bytes <= ctx.memory_bytes:
        return Skipped(LEVER.name, f"{facts}, but all data fit into memory ({sizes}): little is read")
    line = propose_file(
        ctx,
        LEVER,
        path,
        str(DEFAULT_KB),
        reason=f"{facts} where reads look like a sequence, and push out what is cached ({sizes})",
        evidence="128 kB is the kernel's default; the rule is argued, not measured",
    )
    return lines_or_skipped(LEVER, [line], facts)


def _path(ctx: PlanContext) -> str:
    return READ_AHEADS.replace("*", ctx.disks[0].name)


def _concerned(ctx: PlanContext) -> Sequence[str]:
    return [_path(ctx)] if ctx.value(_path(ctx)) is not None else []


detect = detect_files(LEVER, plan, _concerned)
