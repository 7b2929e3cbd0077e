"""Mounted file systems according to /proc/PID/mountinfo.

Format: proc_pid_mountinfo(5).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass

from pgdyno.base.facts import Fact, Unknown
from pgdyno.host.files.tree import Tree, parsed
from pgdyno.host.host import Mount


@dataclass(frozen=True)
class MountEntry:
    """One mountinfo line: file system, mounted part (``root``) and mount point."""

    device_number: str  # major:minor; major 0 means no block device
    root: str
    mount_point: str
    options: tuple[str, ...]  # of this mount and of the file system, without duplicates
    filesystem: str
    device: str


def parse_mountinfo(text: str) -> tuple[MountEntry, ...]:
    """Parse a mountinfo file; malformed lines are skipped."""
    return tuple(entry for line in text.splitlines() if (entry := _parse_line(line)) is not None)


def _parse_line(line: str) -> MountEntry | None:
    mount, separator, filesystem = line.partition(" - ")
    left, right = mount.split(" "), filesystem.split(" ")
    if not separator or len(left) < 6 or len(right) < 3:
        return None
    options = dict.fromkeys([*left[5].split(","), *",".join(right[2:]).split(",")])
    return MountEntry(
        device_number=left[2],
        root=unescape(left[3]),
        mount_point=unescape(left[4]),
        options=tuple(options),
        filesystem=right[0],
        device=unescape(right[1]),
    )


def unescape(text: str) -> str:
    r"""Decode the kernel's octal escapes of white space and backslash: ``\040`` is a space."""
    return re.sub(r"\\([0-3][0-7]{2})", lambda match: chr(int(match[1], 8)), text)


def mount_of(path: str, entries: Iterable[MountEntry]) -> MountEntry | None:
    """Return the mount that holds ``path``: the longest mount point above it; of equal ones, the latest."""
    found: MountEntry | None = None
    for entry in entries:
        is_above = path == entry.mount_point or path.startswith(entry.mount_point.rstrip("/") + "/")
        if is_above and (found is None or len(entry.mount_point) >= len(found.mount_point)):
            found = entry
    return found


def read_mountinfo(tree: Tree, process: str) -> Fact[tuple[MountEntry, ...]]:
    """Return the mounts that ``process`` sees (``self`` or a process id)."""
    return tree.read(f"/proc/{process}/mountinfo", parse_mountinfo)


def inspect_mounts(tree: Tree, process: str, data_directory: Fact[str] | None) -> Fact[tuple[Mount, ...]]:
    """Return the mounts of the data directory and, if it is elsewhere, of the WAL.

    ``data_directory`` is a path without links, as ``process`` sees it; None means the root directory.
    """
    entries = read_mountinfo(tree, process)
    if data_directory is None:
        paths = ["/"]
    elif isinstance(data_directory.value, Unknown):
        return Fact(data_directory.value, data_directory.source)
    else:
        wal = tree.link(f"/proc/{process}/root{data_directory.value}/pg_wal").or_else("pg_wal")
        paths = [data_directory.value, posixpath.normpath(posixpath.join(data_directory.value, wal))]
    found = parsed(entries, lambda known: _mounts_of(paths, known))
    ours = read_mountinfo(tree, "self").or_else(())
    return parsed(found, lambda known: tuple(_mount(tree, process, entry, ours) for entry in known))


def _mounts_of(paths: list[str], entries: tuple[MountEntry, ...]) -> tuple[MountEntry, ...] | Unknown:
    found = dict.fromkeys(entry for path in paths if (entry := mount_of(path, entries)) is not None)
    return tuple(found) or Unknown(f"no mount holds {paths[0]}")


def _mount(tree: Tree, process: str, entry: MountEntry, ours: tuple[MountEntry, ...]) -> Mount:
    """Describe a mount; read it at its mount point if pgdyno sees it: /proc/PID/root is often closed."""
    place = entry.mount_point if entry in ours else f"/proc/{process}/root{entry.mount_point}"
    return Mount(
        target=entry.mount_point,
        device=entry.device,
        filesystem=entry.filesystem,
        options=entry.options,
        available_bytes=tree.available_bytes(place),
        disk=_disk(tree, entry.device_number),
    )


def _disk(tree: Tree, device_number: str) -> Fact[str]:
    """Return a device's whole disk: a partition's directory in /sys/devices is inside its disk's."""
    place = tree.link(f"/sys/dev/block/{device_number}")
    disks = tree.names("/sys/block").or_else(())
    return parsed(place, lambda path: disk_above(path, disks))


def disk_above(path: str, disks: tuple[str, ...]) -> str | Unknown:
    """Return the lowest directory of ``path`` that is a whole disk."""
    return next((name for name in reversed(path.split("/")) if name in disks), Unknown("no parent disk"))
