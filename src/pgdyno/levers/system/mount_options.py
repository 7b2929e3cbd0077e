"""mount_options: implicit writes and trims of the file system.

What it does:
    Reports the mount options atime and discard of the data directory and of the WAL. It changes nothing: a
    mount's options are the administrator's, in /etc/fstab or in the volume's definition.

Why it helps:
    With relatime, the usual choice, the file system notes now and then when a file was read; noatime saves
    that. With discard the blocks of every file that is deleted are trimmed at once: dropped tables, temporary
    files, removed WAL. fstrim.timer trims in bulk, once a week.

When it hurts:
    A few mail readers and backup programs look at access times. A thin-provisioned volume gives space back
    later without discard.

How it is verified:
    /proc/self/mountinfo, or findmnt.

How it is undone:
    There is nothing to undo. By hand: mount -o remount with the options found.

Evidence:
    The kernel's documentation has discard of ext4 off by default. No figure of our own yet.

References:
    https://man7.org/linux/man-pages/man8/mount.8.html
    https://docs.kernel.org/admin-guide/ext4.html
    https://man7.org/linux/man-pages/man8/fstrim.8.html
"""

from __future__ import annotations

from pgdyno.levers._contract import (
    Layer,
    Lever,
    Maturity,
    PlanContext,
    Risk,
    Skipped,
    detect_report,
    verify_files,
)
from pgdyno.model.hosts.host import Mount

NO_ACCESS_TIMES, TRIMS_AT_ONCE = "noatime", "discard"
MOUNTS = "host.mounts"
DIRECTORY = "server.data_directory"  # where it is unknown, the host tells the mount of the root

LEVER = Lever(
    name="mount_options",
    title="no access times, no trimming at once",
    layer=Layer.SYSTEM,
    risk=Risk.SHARED,
    maturity=Maturity.PREVIEW,
    facts=(MOUNTS, DIRECTORY),
)


def plan(ctx: PlanContext) -> Skipped:
    """Report possible savings on each mount, with the command."""
    return Skipped(LEVER.name, "; ".join(_advice(mount) for mount in ctx.known(MOUNTS)))


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


def _is_in_use(ctx: PlanContext) -> bool:
    return all(
        NO_ACCESS_TIMES in mount.options and TRIMS_AT_ONCE not in mount.options for mount in ctx.known(MOUNTS)
    )


detect = detect_report(LEVER, plan, _is_in_use)
verify = verify_files(LEVER)
