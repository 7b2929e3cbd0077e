"""read_ahead: reads that appear sequential do not fetch megabytes of unneeded data.

What it does:
    Lowers the read-ahead of the data directory's disk to 128 kB, the kernel's default, if it is more than
    1 MB and the data does not fit into memory.

Why it helps:
    The kernel reads ahead as soon as a few reads of a file appear sequential, as the pages of an index scan
    often do. At 8 MB each such guess reads up to a thousand pages and evicts as many from the cache.

When it hurts:
    Scans of large tables, dumps and backups on disks with high latency. From 18 on PostgreSQL has its own
    read-ahead (io_method, effective_io_concurrency) and depends less on the kernel's.

How it is verified:
    The value is read back from the kernel.

How it is undone:
    The value found is written back.

Evidence:
    The rule is reasoned; not measured by pgdyno yet. TuneD's profile hpc-compute raises it, to 4 MB, for
    large files that are read sequentially.

References:
    https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-block
    https://www.postgresql.org/docs/current/runtime-config-resource.html#GUC-EFFECTIVE-IO-CONCURRENCY
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.base import numbers
from pgdyno.plan.levers._contract import KB, Layer, Lever, Need, PlanContext, Planned, Risk

READ_AHEADS = "/sys/block/*/queue/read_ahead_kb"
DEFAULT_KB = 128  # Linux, include/linux/pagemap.h: VM_READAHEAD_PAGES
TOLERATED_KB = 1024  # arbitrary; providers' images not made for databases set more

LEVER = Lever(
    name="read_ahead",
    title="moderate read-ahead for random reads",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    files=(READ_AHEADS,),
    needs=(Need.DISKS, Need.MEMORY, Need.DATA_SIZE),
)


def plan(ctx: PlanContext) -> Planned:
    """Propose the kernel's default if read-ahead is larger and the cache cannot hold all data."""
    disk, path = ctx.disks[0].name, _path(ctx)
    found = ctx.value(path)
    if found is None:
        return LEVER.skip(f"the read-ahead of {disk} is not known")
    facts = f"the read-ahead of {disk} is up to {numbers.size(int(found) * KB)}"
    if int(found) <= TOLERATED_KB:
        return LEVER.skip(facts)
    sizes = f"{numbers.size(ctx.data_bytes)} of data and {numbers.size(ctx.memory_bytes)} of memory"
    if ctx.data_bytes <= ctx.memory_bytes:
        return LEVER.skip(f"{facts}, but all data fits into memory ({sizes}): little is read")
    line = LEVER.propose_file(
        ctx,
        path,
        str(DEFAULT_KB),
        reason=f"{facts} for reads that appear sequential, and evicts cached data ({sizes})",
        evidence="128 kB is the kernel's default; the rule is reasoned, not measured",
    )
    return LEVER.planned([line], facts)


def _path(ctx: PlanContext) -> str:
    return READ_AHEADS.replace("*", ctx.disks[0].name)


def concerned(ctx: PlanContext) -> Sequence[str]:
    """Return the files that it may write."""
    return [_path(ctx)] if ctx.value(_path(ctx)) is not None else []
