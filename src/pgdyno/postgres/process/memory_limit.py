"""Limit a scratch server's memory, including page cache and shared memory, by a separate control group.

The group is created below pgdyno's own group, or with version 2 possibly next to it, so it is subject to the
same limits. Cached pages stay charged to the group that read them first: the server would use cached data
that do not count against its limit. So they have to be dropped from the page cache before it starts.

Source: Documentation/admin-guide/cgroup-v1/memory.rst, cgroup-v2.rst.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import stat
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import PrivilegeError, ServerError
from pgdyno.postgres.process import enter_group

_REMOVE_TIMEOUT_S = 10.0
_POLL_S = 0.02
_MEMBERS = "cgroup.procs"
_V1 = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
"""The limits on memory, and on memory plus swap, which must not be lower; some kernels lack the second."""
_V2 = ("memory.max", "memory.swap.max")
_KILLS = {1: "memory.oom_control", 2: "memory.events"}
RECORD_SUFFIX = ".memory-group"


@dataclass(frozen=True)
class GroupPlace:
    """A directory in a control group hierarchy where groups with a memory limit can be created."""

    version: int
    directory: Path


@dataclass(frozen=True)
class MemoryGroup:
    """A group for one server. ``record`` is a file with the group's path, which survives a kill of pgdyno."""

    place: GroupPlace
    name: str
    limit_bytes: int
    record: Path

    @property
    def directory(self) -> Path:
        """The group's directory."""
        return self.place.directory / self.name

    def create(self) -> None:
        """Create the group. Raises: ServerError if the kernel refuses."""
        self._write_record()
        try:
            self.directory.mkdir()
            if self.place.version == 1:
                self._write(_V1[0], self.limit_bytes)
                self._write_if_known(_V1[1], self.limit_bytes)
            else:
                self._write(_V2[0], self.limit_bytes)
                self._write_if_known(_V2[1], 0)
        except OSError as error:
            self.remove()
            raise ServerError(
                f"could not limit a server's memory with {self.directory}",
                detail=os.strerror(error.errno or 0),
            ) from error

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return ``argv`` wrapped to start inside the group."""
        return [sys.executable, "-I", "-S", enter_group.__file__, str(self.directory / _MEMBERS), *argv]

    def kills(self) -> int:
        """Return how many of the group's processes the kernel killed for lack of memory."""
        file = self.directory / _KILLS[self.place.version]
        lines = file.read_text().splitlines() if file.is_file() else []
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def remove(self) -> None:
        """Kill the remaining processes of the group, and remove it.

        Backends may outlive their postmaster, by minutes during an index build. The record is removed after
        the group. Raises: ServerError if the group cannot be removed.
        """
        _remove(self.directory)
        self.record.unlink(missing_ok=True)

    def _write_record(self) -> None:
        """Write the record to a temporary file, and rename it: a kill never leaves an incomplete record."""
        partial = self.record.with_name(f"{self.record.name}.partial")
        partial.write_text(f"{self.directory}\n")
        partial.rename(self.record)

    def _write(self, name: str, value: int) -> None:
        (self.directory / name).write_text(str(value))

    def _write_if_known(self, name: str, value: int) -> None:
        if (self.directory / name).exists():
            self._write(name, value)


def find_place(version: int, directories: Sequence[str]) -> GroupPlace:
    """Return the place for groups. ``directories`` are pgdyno's own group and its ancestors, topmost first.

    Version 1: below the own group. Version 2: below the nearest group that enables the memory controller for
    its children; except for the root, a group that contains processes cannot.
    Raises: PrivilegeError if there is no such place, or it is not writable.
    """
    candidates = [Path(directory) for directory in reversed(directories)]
    if version == 2:
        candidates = [place for place in candidates if "memory" in _controllers(place)]
    if not candidates:
        raise PrivilegeError(
            "the memory of a server cannot be limited here",
            detail="no control group above this process delegates the memory controller"
            if directories
            else "no control group hierarchy with the memory controller is mounted",
            hint="run pgdyno as root with control groups, or choose a preset without a memory limit",
        )
    nearest = candidates[0]
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PrivilegeError(
            "the memory of a server cannot be limited here",
            detail=f"this user cannot create control groups in {nearest}",
            hint="run pgdyno as root, or choose a preset without a memory limit",
        )
    return GroupPlace(version, nearest)


def group_name(directory: Path, seat: str) -> str:
    """Return the name of a seat's group; it contains the scratch directory's name."""
    return f"{_name_prefix(directory)}{seat}"


def remove_recorded(directory: Path, hierarchies: Sequence[Path] | None = None) -> None:
    """Remove the groups that are recorded in a scratch directory, and kill their remaining processes.

    A record must name a group of this directory in one of the ``hierarchies`` (None: the mounted ones).
    Otherwise only the record is removed: it must not cause other processes to be killed.

    Raises: ServerError if a group cannot be removed.
    """
    places = _mounted_hierarchies() if hierarchies is None else hierarchies
    for record in directory.glob(f"*{RECORD_SUFFIX}"):
        group = Path(record.read_text(errors="replace").strip())
        is_below = ".." not in group.parts and any(place in group.parents for place in places)
        if is_below and group.name.startswith(_name_prefix(directory)):
            _remove(group)
        record.unlink()


def drop_from_page_cache(directory: Path) -> None:
    """Write back and drop all cached pages of the files below a directory."""
    for parent, _, names in os.walk(directory):
        for path in (Path(parent) / name for name in names):
            # The directory may belong to another user: do not follow links, do not block on pipes.
            if stat.S_ISREG(path.lstat().st_mode):
                drop_file_from_page_cache(path)


def drop_file_from_page_cache(path: Path) -> None:
    """Write back and drop the cached pages of a file, except those mapped by a process."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(file)


def _name_prefix(directory: Path) -> str:
    return f"pgdyno-{directory.name}-"


def _mounted_hierarchies() -> list[Path]:
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [Path(place) for _, place, kind, *_ in mounts if kind in {"cgroup", "cgroup2"}]


def _controllers(group: Path) -> list[str]:
    """Return the controllers enabled for the children of a version 2 group."""
    file = group / "cgroup.subtree_control"
    return file.read_text().split() if file.is_file() else []


def _members(group: Path) -> list[int]:
    file = group / _MEMBERS
    pids = [int(line) for line in file.read_text().split()] if file.is_file() else []
    return [pid for pid in pids if pid > 0]  # 0 is a process outside our PID namespace


def _kill(pid: int) -> None:
    # It may have exited already. A process that we may not kill keeps its group, whose removal then fails.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _remove(group: Path) -> None:
    """Kill a group's processes and remove it; killed processes may take a moment to exit."""
    deadline = time.monotonic() + _REMOVE_TIMEOUT_S
    while group.is_dir():
        for pid in _members(group):
            _kill(pid)
        try:
            group.rmdir()
        except OSError as error:
            if error.errno not in (errno.EBUSY, errno.ENOENT) or time.monotonic() > deadline:
                raise ServerError(
                    f"could not remove the control group {group}",
                    detail=os.strerror(error.errno or 0),
                    hint=f"kill the processes listed in {group / _MEMBERS}, then: rmdir {group}",
                ) from error
            time.sleep(_POLL_S)
