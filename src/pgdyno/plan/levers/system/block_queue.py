"""block_queue: accounting, merging and throttling of requests to solid-state disks. Reported only.

What it does:
    Changes nothing. It says which of the kernel's work with each request of the data's and the WAL's
    disk could be switched off in a variant: accounting (iostats = 0), the search for requests to merge with
    (nomerges = 2) and the throttling of writes (wbt_lat_usec = 0).

Why it helps:
    Each request takes less CPU time. Throttling makes writes wait while reads are slow; it holds back a flush
    of the WAL as well as a checkpoint.

When it hurts:
    Without accounting iostat shows nothing, and steps of the Insert Benchmark have no figures of the disk.
    Without merging, small writes side by side stay small: a disk that takes time for each request becomes
    slower. Without throttling, a checkpoint makes reads wait.

How it is verified:
    The kernel's files, read anew.

How it is undone:
    The values found are written back.

Evidence:
    Our estimate for read-write load is 0 to 2 %; not measured by pgdyno yet.

References:
    https://docs.kernel.org/block/stat.html
    https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-block
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

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
    detect_files,
    is_virtual,
    lines_or_skipped,
    propose_file,
)

WANTED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "/sys/block/*/queue/iostats": ("0", "each request is counted and timed"),
        "/sys/block/*/queue/nomerges": ("2", "for each request one to merge with is looked for"),
        "/sys/block/*/queue/wbt_lat_usec": ("0", "writes are held back while reads are slow"),
    }
)

LEVER = Lever(
    name="block_queue",
    title="requests of a disk passed on as they are",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    files=tuple(WANTED),
    needs=(Need.DISKS,),
    is_instant=True,
    switch_s=0.03,  # as io_scheduler's, not measured: the kernel waits for requests under way as well
)


def plan(ctx: PlanContext) -> Skipped:
    """Report settings to try: interleaved servers share the disk, so that no duet shows their worth."""
    found = _lines(ctx)
    if isinstance(found, Skipped):
        return found
    values = ",".join(f"{line.change.key}={line.change.value}" for line in found)
    return Skipped(LEVER.name, f"reported only: no figure shows its worth; to try in a variant: {values}")


def _lines(ctx: PlanContext) -> Sequence[PlanLine] | Skipped:
    disks = [disk for disk in ctx.disks if not _has_head(ctx, disk)]
    lines = [
        propose_file(
            ctx,
            LEVER,
            pattern.replace("*", disk.name),
            value,
            reason=f"{why} on {disk.name}",
            evidence="Linux, ABI/stable/sysfs-block; not measured by pgdyno yet",
        )
        for disk in disks
        for pattern, (value, why) in WANTED.items()
    ]
    return lines_or_skipped(LEVER, lines, "already so" if disks else "the disk's head gains by merging")


def _has_head(ctx: PlanContext, disk: BlockDevice) -> bool:
    """Whether a disk is rotational or unknown: virtual disks report it whatever lies below."""
    return disk.is_rotational.or_else(default=True) and not (ctx.host is not None and is_virtual(ctx.host))


def _concerned(ctx: PlanContext) -> Sequence[str]:
    paths = [pattern.replace("*", disk.name) for disk in ctx.disks for pattern in WANTED]
    return [path for path in paths if ctx.value(path) is not None]


detect = detect_files(LEVER, _lines, _concerned)
