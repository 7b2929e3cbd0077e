"""io_scheduler: requests go to a disk without a head as they come.

What it does:
    Chooses the scheduler none for the disks of the data directory and of the WAL, where it is offered and the
    disk has no head to move: an SSD, an NVMe disk, a disk of a virtual machine. Of a logical volume it sees
    the volume, which has no scheduler, and not the disks below.

Why it helps:
    The other schedulers sort and hold back requests, to save a disk head its way and to share the disk
    between programs. A disk without a head gains nothing by it, and a virtual one is scheduled by the machine
    below once more. What remains is the CPU time, and one lock that all who read and write have to take.

When it hurts:
    mq-deadline lets reads pass before writes: on a slow SSD reads may wait longer while a checkpoint writes.
    With the scheduler the kernel sets nr_requests anew, and forgets what was set below queue/iosched.

How it is verified:
    The kernel's choice, read anew.

How it is undone:
    The scheduler found is chosen again, with the tunables that it begins with.

Evidence:
    Linux itself takes none for disks with several hardware queues. Oracle's guide for its database advises
    none for SSD and NVMe disks. In whole trials (sysbench, 2 CPUs, a virtual disk, 11 and 12 rounds) no
    effect was found; one below 13 to 22 % would have been missed.

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
    Maturity,
    Need,
    PlanContext,
    PlanLine,
    Risk,
    Skipped,
    choices_in,
    detect_files,
    is_virtual,
    lines_or_skipped,
    propose_file,
)

SCHEDULERS = "/sys/block/*/queue/scheduler"
NONE = "none"

LEVER = Lever(
    name="io_scheduler",
    title="no I/O scheduler for disks without moving heads",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    files=(SCHEDULERS,),
    needs=(Need.DISKS,),
    is_instant=True,
    switch_s=0.03,  # measured: 24 to 32 ms, until requests under way are done
)


def plan(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    """Propose none for the server's disks."""
    left = {disk.name: _why_left(ctx, disk) for disk in ctx.disks}
    lines = [
        propose_file(
            ctx,
            LEVER,
            _path(disk),
            NONE,
            reason=f"{ctx.value(_path(disk))} sorts and holds back requests for a disk head, and {disk.name} "
            "has none",
            evidence="Linux takes none itself for disks with several queues; Oracle's guide for SSD and NVMe",
        )
        for disk in ctx.disks
        if left[disk.name] is None
    ]
    return lines_or_skipped(LEVER, lines, "; ".join(why for why in left.values() if why is not None))


def _path(disk: BlockDevice) -> str:
    return SCHEDULERS.replace("*", disk.name)


def _why_left(ctx: PlanContext, disk: BlockDevice) -> str | None:
    """Say why a disk keeps the scheduler that it has; None if it need not."""
    found = ctx.value(_path(disk))
    if found is None:
        return f"{disk.name} has no scheduler"
    if found == NONE:
        return f"{disk.name} has the scheduler none already"
    if NONE not in choices_in(ctx.file(_path(disk)).or_else("")):
        return f"this kernel does not offer none for {disk.name}"
    rotates = disk.is_rotational.or_none()
    if rotates is None:
        return f"whether {disk.name} rotates is not known"
    is_real = ctx.host is not None and not is_virtual(ctx.host)
    return f"{disk.name} rotates, and {found} saves its head some of the way" if rotates and is_real else None


def _concerned(ctx: PlanContext) -> Sequence[str]:
    return [_path(disk) for disk in ctx.disks if ctx.value(_path(disk)) is not None]


detect = detect_files(LEVER, plan, _concerned)
