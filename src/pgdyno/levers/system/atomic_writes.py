"""atomic_writes: whether the storage writes a page of the database whole or not at all.

What it does:
    Reports the largest write that the disk promises not to tear. It changes nothing, and full_page_writes
    stays on whatever is found: pgdyno never trades durability.

Why it helps:
    After every checkpoint PostgreSQL writes each changed page into the WAL as a whole, because a crash may
    leave half of it on the disk. A disk that never tears a page would make that superfluous.

When it hurts:
    The promise holds for writes that ask for it (RWF_ATOMIC) and go to the disk directly. PostgreSQL's do
    neither, so that nothing is promised for them, whatever the disk is capable of.

How it is verified:
    What the kernel says of the disk's queue; statx(2) says what is left of it in the file system.

How it is undone:
    There is nothing to undo.

Evidence:
    None needed: it is a report. Ext4 passes the promise on since Linux 6.13, for direct I/O only.

References:
    https://docs.kernel.org/filesystems/ext4/atomic_writes.html
    https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-FULL-PAGE-WRITES
"""

from __future__ import annotations

from pgdyno.levers._contract import (
    Layer,
    Lever,
    Maturity,
    Need,
    PlanContext,
    Risk,
    Skipped,
    detect_report,
    verify_files,
)
from pgdyno.model import numbers

LARGEST = "/sys/block/*/queue/atomic_write_unit_max_bytes"

LEVER = Lever(
    name="atomic_writes",
    title="pages written whole by the storage",
    layer=Layer.SYSTEM,
    risk=Risk.SAFE,
    maturity=Maturity.PREVIEW,
    reads=(LARGEST,),
    needs=(Need.DISKS,),
)


def plan(ctx: PlanContext) -> Skipped:
    """Report the atomicity of the data directory's disk, and why full_page_writes stays."""
    disk, largest_bytes = ctx.disks[0].name, _largest_bytes(ctx)
    page_bytes = int(ctx.settings.text("block_size"))
    if largest_bytes == 0:
        return Skipped(LEVER.name, f"{disk} promises no atomic writes: full_page_writes stays on")
    promise = f"{disk} can write up to {numbers.size(largest_bytes)} whole"
    if largest_bytes < page_bytes:
        return Skipped(
            LEVER.name, f"{promise}, and a page has {numbers.size(page_bytes)}: full_page_writes stays on"
        )
    return Skipped(
        LEVER.name,
        f"{promise}, which holds a page of {numbers.size(page_bytes)}; but only for writes that ask for it, "
        "and PostgreSQL's do not: full_page_writes stays on",
    )


def _largest_bytes(ctx: PlanContext) -> int:
    return int(ctx.value(LARGEST.replace("*", ctx.disks[0].name)) or 0)


def _is_in_use(ctx: PlanContext) -> bool:
    return _largest_bytes(ctx) >= int(ctx.settings.text("block_size"))


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
