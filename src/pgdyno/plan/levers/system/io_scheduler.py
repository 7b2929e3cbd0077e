"""io_scheduler: no request scheduling for disks without a head.

What it does:
    Chooses the scheduler none for the disks of the data directory and of the WAL, if it is available and the
    disk has no head to move: an SSD, an NVMe disk, a disk of a virtual machine. For a logical volume it sees
    only the volume, which has no scheduler, not the disks below.

Why it helps:
    The other schedulers sort and delay requests, to save head movements and to share the disk between
    programs. A disk without a head gains nothing, and the host schedules a virtual disk's requests again.
    The remaining cost is CPU time, and one lock that all readers and writers must take.

When it hurts:
    mq-deadline prefers reads to writes: without it, on a slow SSD, reads may wait longer while a checkpoint
    writes. A change of scheduler makes the kernel reset nr_requests and the tunables in queue/iosched.

How it is verified:
    The active scheduler is read back from the kernel.

How it is undone:
    The scheduler found is chosen again, with its default tunables.

Evidence:
    Linux uses none by default for disks with several hardware queues. Oracle's guide for its database advises
    none for SSD and NVMe disks. In whole trials (sysbench, 2 CPUs, a virtual disk, 11 and 12 rounds) no
    effect was found; an effect below 13 to 22 % would have been missed.

References:
    https://docs.kernel.org/block/switching-sched.html
    https://docs.oracle.com/en/database/oracle/oracle-database/23/cwlin/setting-the-disk-io-scheduler-on-linux.html
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.host.host import BlockDevice
from pgdyno.plan.levers._contract import (
    Layer,
    Lever,
    Need,
    PlanContext,
    Planned,
    Risk,
    choices_in,
    is_virtual,
)

SCHEDULERS = "/sys/block/*/queue/scheduler"
NONE = "none"

LEVER = Lever(
    name="io_scheduler",
    title="no I/O scheduler for disks without moving heads",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    files=(SCHEDULERS,),
    needs=(Need.DISKS,),
    is_instant=True,
    switch_s=0.03,  # measured: 24 to 32 ms, until requests in flight are done
)


def plan(ctx: PlanContext) -> Planned:
    """Propose none for the server's disks."""
    left = {disk.name: _why_left(ctx, disk) for disk in ctx.disks}
    lines = [
        LEVER.propose_file(
            ctx,
            _path(disk),
            NONE,
            reason=f"{ctx.value(_path(disk))} sorts and delays requests for a disk head, but {disk.name} has "
            "no head",
            evidence="Linux's default for disks with several queues; Oracle's guide for SSD and NVMe",
        )
        for disk in ctx.disks
        if left[disk.name] is None
    ]
    return LEVER.planned(lines, "; ".join(why for why in left.values() if why is not None))


def _path(disk: BlockDevice) -> str:
    return SCHEDULERS.replace("*", disk.name)


def _why_left(ctx: PlanContext, disk: BlockDevice) -> str | None:
    """Return why a disk keeps its scheduler; None if it should be changed."""
    found = ctx.value(_path(disk))
    if found is None:
        return f"{disk.name} has no scheduler"
    if found == NONE:
        return f"{disk.name} already has the scheduler none"
    if NONE not in choices_in(ctx.file(_path(disk)).or_else("")):
        return f"this kernel does not offer none for {disk.name}"
    rotates = disk.is_rotational.or_none()
    if rotates is None:
        return f"whether {disk.name} rotates is not known"
    is_real = ctx.host is not None and not is_virtual(ctx.host)
    return f"{disk.name} rotates, and {found} saves head movements" if rotates and is_real else None


def concerned(ctx: PlanContext) -> Sequence[str]:
    """Return the files that it may write."""
    return [_path(disk) for disk in ctx.disks if ctx.value(_path(disk)) is not None]
