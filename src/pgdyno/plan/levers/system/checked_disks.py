"""Checks of the disks and file systems of the data and the WAL."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.base import numbers
from pgdyno.host.host import Mount
from pgdyno.plan.levers._contract import Check, Layer, Lever, Need, PlanContext, Risk

LARGEST = "/sys/block/*/queue/atomic_write_unit_max_bytes"
LENGTHS = "/sys/block/*/queue/nr_requests"
NO_ACCESS_TIMES, TRIMS_AT_ONCE = "noatime", "discard"
MOUNTS = "host.mounts"
DIRECTORY = "server.data_directory"  # if unknown, the host reports the mount of /


def _atomic_writes(ctx: PlanContext) -> str:
    disk, largest_bytes = ctx.disks[0].name, _largest_bytes(ctx)
    page_bytes = int(ctx.settings.text("block_size"))
    if largest_bytes == 0:
        return f"{disk} does not support atomic writes: full_page_writes stays on"
    promise = f"{disk} can write up to {numbers.size(largest_bytes)} atomically"
    if largest_bytes < page_bytes:
        return f"{promise}, but a page has {numbers.size(page_bytes)}: full_page_writes stays on"
    return (
        f"{promise}, enough for a page of {numbers.size(page_bytes)}, but only for writes that request it, "
        "which PostgreSQL does not: full_page_writes stays on"
    )


def _largest_bytes(ctx: PlanContext) -> int:
    return int(ctx.value(LARGEST.replace("*", ctx.disks[0].name)) or 0)


def _holds_a_page(ctx: PlanContext) -> bool:
    return _largest_bytes(ctx) >= int(ctx.settings.text("block_size"))


def _io_queue_depth(ctx: PlanContext) -> str:
    lengths = [
        f"{disk.name} can queue {length} requests"
        for disk in ctx.disks
        if (length := ctx.value(LENGTHS.replace("*", disk.name))) is not None
    ]
    if not lengths:
        return f"{ctx.disks[0].name} has no queue"
    advice = "iostat -x under load shows how many are queued (aqu-sz); only a full queue justifies a change"
    return f"{', '.join(lengths)}: {advice}"


def _mount_options(ctx: PlanContext) -> str:
    return "; ".join(_advice(mount) for mount in ctx.known(MOUNTS))


def _advice(mount: Mount) -> str:
    costs, instead = [], []
    if NO_ACCESS_TIMES not in mount.options:
        costs.append("records access times")
        instead.append(NO_ACCESS_TIMES)
    if TRIMS_AT_ONCE in mount.options:
        costs.append("trims at every delete (fstrim.timer trims in bulk)")
        instead.append("nodiscard")
    place = f"{mount.target} ({mount.filesystem})"
    if not costs:
        return f"{place} does not record access times or trim at every delete"
    command = f"mount -o remount,{','.join(instead)} {mount.target}"
    return f"{place} {' and '.join(costs)}: {command}, and the same in /etc/fstab"


def _is_mounted_so(ctx: PlanContext) -> bool:
    return all(
        NO_ACCESS_TIMES in mount.options and TRIMS_AT_ONCE not in mount.options for mount in ctx.known(MOUNTS)
    )


def _wal_device(ctx: PlanContext) -> str:
    places, wal = _places(ctx), f"{ctx.known(DIRECTORY)}/pg_wal"
    if _is_apart(ctx):
        return f"reported only: the data is on {places[0]}, the WAL on {places[1]}"
    return (
        f"reported only: the WAL is on {places[0]} with the data. To compare the flush times of disks: "
        "pg_test_fsync -f FILE, with FILE on the disk and outside the data directory, while nothing else "
        f"writes. To move the WAL: stop the server, mv {wal} to the other disk, ln -s from there to {wal}"
    )


def _places(ctx: PlanContext) -> tuple[str, ...]:
    """Return the data's disk, followed by the WAL's if different."""
    mounts: Sequence[Mount] = ctx.known(MOUNTS)
    return tuple(dict.fromkeys(mount.disk.or_else(mount.device) for mount in mounts))


def _is_apart(ctx: PlanContext) -> bool:
    return len(_places(ctx)) > 1


CHECKS = (
    Check(
        Lever(
            name="atomic_writes",
            title="atomic page writes by the storage",
            layer=Layer.SYSTEM,
            risk=Risk.SAFE,
            reads=(LARGEST,),
            needs=(Need.DISKS,),
        ),
        _atomic_writes,
        _holds_a_page,
        "a disk without torn database pages. full_page_writes stays on regardless of the finding: the "
        "guarantee requires RWF_ATOMIC and direct I/O, and PostgreSQL's writes use neither.",
        (
            "https://docs.kernel.org/filesystems/ext4/atomic_writes.html",
            "https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-FULL-PAGE-WRITES",
        ),
    ),
    Check(
        Lever(
            name="io_queue_depth",
            title="queue length of a disk",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            reads=(LENGTHS,),
            needs=(Need.DISKS,),
            order_after={"io_scheduler": "choosing a scheduler resets the length"},
        ),
        _io_queue_depth,
        lambda _: False,  # every disk has a queue, so its presence means nothing
        "a queue that is not full: writes fill a long one, and a short one keeps a fast disk idle. Not yet "
        "measured by pgdyno.",
        (
            "https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-block",
            "https://man7.org/linux/man-pages/man1/iostat.1.html",
        ),
    ),
    Check(
        Lever(
            name="mount_options",
            title="no access times, no immediate trimming",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            facts=(MOUNTS, DIRECTORY),
        ),
        _mount_options,
        _is_mounted_so,
        "noatime, and no discard: fstrim.timer trims in bulk. A few mail readers and backup programs use "
        "access times; a thin-provisioned volume releases space later. Not yet measured by pgdyno.",
        (
            "https://man7.org/linux/man-pages/man8/mount.8.html",
            "https://docs.kernel.org/admin-guide/ext4.html",
            "https://man7.org/linux/man-pages/man8/fstrim.8.html",
        ),
    ),
    Check(
        Lever(
            name="wal_device",
            title="a separate disk for the WAL",
            layer=Layer.SYSTEM,
            risk=Risk.RESTART,
            facts=(MOUNTS, DIRECTORY),
        ),
        _wal_device,
        _is_apart,
        "a dedicated disk, if the disk limits commits: they then do not queue behind a checkpoint's writes. "
        "Either of two disks can fail; two volumes on one disk gain nothing. Not yet measured by pgdyno.",
        (
            "https://www.postgresql.org/docs/current/wal-internals.html",
            "https://www.postgresql.org/docs/current/pgtestfsync.html",
            "https://www.postgresql.org/docs/current/app-initdb.html#APP-INITDB-OPTION-WALDIR",
        ),
    ),
)
