"""block_queue: accounting, merging and throttling of requests to solid-state disks. Reported only.

What it does:
    Changes nothing. Reports which of the kernel's work per request to the disks of the data and the WAL could
    be switched off in a variant: accounting (iostats = 0), the search for requests to merge with
    (nomerges = 2) and write throttling (wbt_lat_usec = 0).

Why it helps:
    Each request takes less CPU time. Throttling delays writes while reads are slow: checkpoints, but also
    flushes of the WAL.

When it hurts:
    Without accounting iostat shows nothing, and steps of the Insert Benchmark have no disk figures.
    Without merging, adjacent small writes stay small: a disk with a high cost per request becomes slower.
    Without throttling, a checkpoint delays reads.

How it is verified:
    The kernel files are read back.

How it is undone:
    The values found are written back.

Evidence:
    Estimated 0 to 2 % for read-write load; not measured by pgdyno yet.

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
    Need,
    PlanContext,
    Planned,
    Risk,
    Skipped,
    detect_files,
    is_virtual,
)

WANTED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "/sys/block/*/queue/iostats": ("0", "each request is counted and timed"),
        "/sys/block/*/queue/nomerges": ("2", "the kernel searches for a merge for each request"),
        "/sys/block/*/queue/wbt_lat_usec": ("0", "writes are delayed while reads are slow"),
    }
)

LEVER = Lever(
    name="block_queue",
    title="less kernel work per disk request",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    files=tuple(WANTED),
    needs=(Need.DISKS,),
    is_instant=True,
    switch_s=0.03,  # not measured, same as io_scheduler: the kernel waits for requests in flight as well
)


def plan(ctx: PlanContext) -> Skipped:
    """Report settings to try: interleaved servers share the disk, so a duet cannot show their effect."""
    found = _lines(ctx)
    if isinstance(found, Skipped):
        return found
    values = ",".join(f"{line.change.key}={line.change.value}" for line in found)
    return LEVER.skip(f"reported only: its benefit is not measured; to try in a variant: {values}")


def _lines(ctx: PlanContext) -> Planned:
    disks = [disk for disk in ctx.disks if not _has_head(ctx, disk)]
    lines = [
        LEVER.propose_file(
            ctx,
            pattern.replace("*", disk.name),
            value,
            reason=f"{why} on {disk.name}",
            evidence="Linux, ABI/stable/sysfs-block; not measured by pgdyno yet",
        )
        for disk in disks
        for pattern, (value, why) in WANTED.items()
    ]
    return LEVER.planned(lines, "already set" if disks else "a rotating disk benefits from merging")


def _has_head(ctx: PlanContext, disk: BlockDevice) -> bool:
    """Whether a disk is rotational or unknown; a virtual disk's report is ignored, as it proves nothing."""
    return disk.is_rotational.or_else(default=True) and not (ctx.host is not None and is_virtual(ctx.host))


def _concerned(ctx: PlanContext) -> Sequence[str]:
    paths = [pattern.replace("*", disk.name) for disk in ctx.disks for pattern in WANTED]
    return [path for path in paths if ctx.value(path) is not None]


detect = detect_files(LEVER, _lines, _concerned)
