"""io_queue_depth: how many requests may wait for a disk.

What it does:
    Reports nr_requests of the disks of the data directory and of the WAL. It changes nothing: what is right
    depends on the disk, and no fact of the host tells it.

Why it helps:
    Where more requests are wanted than may wait, whoever reads or writes waits before it may even ask. A
    shorter queue bounds how long a read waits behind a checkpoint's writes.

When it hurts:
    A long queue is filled by writes, and a short one keeps a fast disk idle.

How it is verified:
    aqu-sz in iostat -x says how many requests are waiting or under way: near nr_requests, that is the limit.

How it is undone:
    There is nothing to undo. By hand: the value found is written back; choosing a scheduler sets it anew.

Evidence:
    No figure of our own yet.

References:
    https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-block
    https://man7.org/linux/man-pages/man1/iostat.1.html
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

LENGTHS = "/sys/block/*/queue/nr_requests"

LEVER = Lever(
    name="io_queue_depth",
    title="requests that may wait for a disk",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    reads=(LENGTHS,),
    needs=(Need.DISKS,),
    order_after={"io_scheduler": "choosing a scheduler resets the length"},
)


def plan(ctx: PlanContext) -> Skipped:
    """Report the lengths of the queues, and the evidence whether they suffice."""
    lengths = [
        f"{length} requests may wait for {disk.name}"
        for disk in ctx.disks
        if (length := ctx.value(LENGTHS.replace("*", disk.name))) is not None
    ]
    if not lengths:
        return Skipped(LEVER.name, f"{ctx.disks[0].name} has no queue")
    told = "iostat -x says under load how many do (aqu-sz); only a queue that is full is worth a change"
    return Skipped(LEVER.name, f"{', '.join(lengths)}: {told}")


def _is_in_use(_ctx: PlanContext) -> bool:
    return False  # every disk has a queue, and none of them is ours


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
