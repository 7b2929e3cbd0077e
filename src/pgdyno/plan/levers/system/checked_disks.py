"""Checks of the disks and file systems that the data and the WAL lie on."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.base import numbers
from pgdyno.host.host import Mount
from pgdyno.plan.levers._contract import Check, Layer, Lever, Maturity, Need, PlanContext, Risk

LARGEST = "/sys/block/*/queue/atomic_write_unit_max_bytes"
LENGTHS = "/sys/block/*/queue/nr_requests"
NO_ACCESS_TIMES, TRIMS_AT_ONCE = "noatime", "discard"
MOUNTS = "host.mounts"
DIRECTORY = "server.data_directory"  # where it is unknown, the host tells the mount of the root


def _atomic_writes(ctx: PlanContext) -> str:
    disk, largest_bytes = ctx.disks[0].name, _largest_bytes(ctx)
    page_bytes = int(ctx.settings.text("block_size"))
    if largest_bytes == 0:
        return f"{disk} promises no atomic writes: full_page_writes stays on"
    promise = f"{disk} can write up to {numbers.size(largest_bytes)} whole"
    if largest_bytes < page_bytes:
        return f"{promise}, and a page has {numbers.size(page_bytes)}: full_page_writes stays on"
    return (
        f"{promise}, which holds a page of {numbers.size(page_bytes)}; but only for writes that ask for it, "
        "and PostgreSQL's do not: full_page_writes stays on"
    )


def _largest_bytes(ctx: PlanContext) -> int:
    return int(ctx.value(LARGEST.replace("*", ctx.disks[0].name)) or 0)


def _holds_a_page(ctx: PlanContext) -> bool:
    return _largest_bytes(ctx) >= int(ctx.settings.text("block_size"))


def _io_queue_depth(ctx: PlanContext) -> str:
    lengths = [
        f"{length} requests may wait for {disk.name}"
        for disk in ctx.disks
        if (length := ctx.value(LENGTHS.replace("*", disk.name))) is not None
    ]
    if not lengths:
        return f"{ctx.disks[0].name} has no queue"
    told = "iostat -x says under load how many do (aqu-sz); only a queue that is full is worth a change"
    return f"{', '.join(lengths)}: {told}"


def _mount_options(ctx: PlanContext) -> str:
    return "; ".join(_advice(mount) for mount in ctx.known(MOUNTS))


def _advice(mount: Mount) -> str:
    costs, instead = [], []
    if NO_ACCESS_TIMES not in mount.options:
        costs.append("notes when files are read")
        instead.append(NO_ACCESS_TIMES)
    if TRIMS_AT_ONCE in mount.options:
        costs.append("trims at every delete (fstrim.timer does it in bulk)")
        instead.append("nodiscard")
    place = f"{mount.target} ({mount.filesystem})"
    if not costs:
        return f"{place} neither notes when files are read nor trims at every delete"
    command = f"mount -o remount,{','.join(instead)} {mount.target}"
    return f"{place} {' and '.join(costs)}: {command}, and the same in /etc/fstab"


def _is_mounted_so(ctx: PlanContext) -> bool:
    return all(
        NO_ACCESS_TIMES in mount.options and TRIMS_AT_ONCE not in mount.options for mount in ctx.known(MOUNTS)
    )


def _wal_device(ctx: PlanContext) -> str:
    places, wal = _places(ctx), f"{ctx.known(DIRECTORY)}/pg_wal"
    if _is_apart(ctx):
        return f"reported only: the data lie on {places[0]}, the WAL on {places[1]}"
    return (
        f"reported only: the WAL lies on {places[0]} with the data; what a commit waits for there, and on "
        "another disk, says pg_test_fsync -f FILE, with FILE on the disk and outside the data directory, "
        f"while nothing else writes. To move it: stop the server, mv {wal} there, ln -s from there to {wal}"
    )


def _places(ctx: PlanContext) -> tuple[str, ...]:
    """Return the disk of the data, and after it that of the WAL if it is another."""
    mounts: Sequence[Mount] = ctx.known(MOUNTS)
    return tuple(dict.fromkeys(mount.disk.or_else(mount.device) for mount in mounts))


def _is_apart(ctx: PlanContext) -> bool:
    return len(_places(ctx)) > 1


CHECKS = (
    Check(
        Lever(
            name="atomic_writes",
            title="pages written whole by the storage",
            layer=Layer.SYSTEM,
            risk=Risk.SAFE,
            maturity=Maturity.PREVIEW,
            reads=(LARGEST,),
            needs=(Need.DISKS,),
        ),
        _atomic_writes,
        _holds_a_page,
        "a disk that never tears a page of the database. full_page_writes stays on whatever is found: the "
        "promise holds for writes that ask for it (RWF_ATOMIC) and go to the disk directly, and "
        "PostgreSQL's do neither.",
        (
            "https://docs.kernel.org/filesystems/ext4/atomic_writes.html",
            "https://www.postgresql.org/docs/current/runtime-config-wal.html#GUC-FULL-PAGE-WRITES",
        ),
    ),
    Check(
        Lever(
            name="io_queue_depth",
            title="requests that may wait for a disk",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            maturity=Maturity.PREVIEW,
            reads=(LENGTHS,),
            needs=(Need.DISKS,),
            order_after={"io_scheduler": "choosing a scheduler resets the length"},
        ),
        _io_queue_depth,
        lambda _: False,  # every disk has a queue, and none of them is ours
        "a queue that is not full: a long one is filled by writes, and a short one keeps a fast disk idle. "
        "No figure of our own yet.",
        (
            "https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-block",
            "https://man7.org/linux/man-pages/man1/iostat.1.html",
        ),
    ),
    Check(
        Lever(
            name="mount_options",
            title="no access times, no trimming at once",
            layer=Layer.SYSTEM,
            risk=Risk.SHARED,
            maturity=Maturity.PREVIEW,
            facts=(MOUNTS, DIRECTORY),
        ),
        _mount_options,
        _is_mounted_so,
        "noatime, and no discard: fstrim.timer trims in bulk. A few mail readers and backup programs look "
        "at access times; a thin-provisioned volume gives space back later. No figure of our own yet.",
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
            maturity=Maturity.PREVIEW,
            facts=(MOUNTS, DIRECTORY),
        ),
        _wal_device,
        _is_apart,
        "a disk of its own, where the disk is what limits commits: they do not queue behind a checkpoint's "
        "writes then. Two disks are two that can fail; two volumes above one disk gain nothing. No figure "
        "of our own yet.",
        (
            "https://www.postgresql.org/docs/current/wal-internals.html",
            "https://www.postgresql.org/docs/current/pgtestfsync.html",
            "https://www.postgresql.org/docs/current/app-initdb.html#APP-INITDB-OPTION-WALDIR",
        ),
    ),
)
