"""Limit the memory of a scratch server by a control group of its own.

Page cache and shared memory count.

The group is made below, or with version 2 beside, the group of pgdyno itself, so that all limits that apply
here apply there too. Pages that are cached already stay charged to whoever read them first: the server would
find its data in memory that it does not pay for. They have to be dropped before it starts.

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
"""The limit on memory, then that on memory and swap, which must not be lower; some kernels have no second."""
_V2 = ("memory.max", "memory.swap.max")
_KILLS = {1: "memory.oom_control", 2: "memory.events"}
RECORD_SUFFIX = ".memory-group"


@dataclass(frozen=True)
class GroupPlace:
    """Where groups with a limit on memory can be made: a directory of a control group hierarchy."""

    version: int
    directory: Path


@dataclass(frozen=True)
class MemoryGroup:
    """A group for one server. ``record`` is a file that outlives a kill and names the group."""

    place: GroupPlace
    name: str
    limit_bytes: int
    record: Path

    @property
    def directory(self) -> Path:
        """The group's own directory."""
        return self.place.directory / self.name

    def create(self) -> None:
        """Make the group. Raises: ServerError if the kernel refuses."""
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
                f"could not limit a server's memory by {self.directory}", detail=os.strerror(error.errno or 0)
            ) from error

    def command(self, argv: Sequence[str]) -> list[str]:
        """Return ``argv`` so that it starts inside the group."""
        return [sys.executable, "-I", "-S", enter_group.__file__, str(self.directory / _MEMBERS), *argv]

    def kills(self) -> int:
        """Return how many processes the kernel has killed because the group had no memory left."""
        file = self.directory / _KILLS[self.place.version]
        lines = file.read_text().splitlines() if file.is_file() else []
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def remove(self) -> None:
        """Terminate the remaining processes of the group, and remove it.

        Backends may outlive their postmaster, a long index build by minutes. The record stays as long as the
        group does. Raises: ServerError if it does not go.
        """
        _remove(self.directory)
        self.record.unlink(missing_ok=True)

    def _write_record(self) -> None:
        """Write it under another name first: a kill never leaves half a record."""
        partial = self.record.with_name(f"{self.record.name}.partial")
        partial.write_text(f"{self.directory}\n")
        partial.rename(self.record)

    def _write(self, name: str, value: int) -> None:
        (self.directory / name).write_text(str(value))

    def _write_if_known(self, name: str, value: int) -> None:
        if (self.directory / name).exists():
            self._write(name, value)


def find_place(version: int, directories: Sequence[str]) -> GroupPlace:
    """Return where groups can be made, seen from the groups of pgdyno itself, topmost first.

    Version 1: below the own group. Version 2: below the nearest group that gives its children the memory
    controller; the own one cannot as long as it holds processes, except for the root.
    Raises: PrivilegeError if there is no such place, or it must not be written to.
    """
    candidates = [Path(directory) for directory in reversed(directories)]
    if version == 2:
        candidates = [place for place in candidates if "memory" in _controllers(place)]
    if not candidates:
        raise PrivilegeError(
            "the memory of a server cannot be limited here",
            detail="no control group above this process gives its children the memory controller"
            if directories
            else "no control group hierarchy with the memory controller is mounted",
            hint="run pgdyno as root where control groups are, or choose a preset without a memory limit",
        )
    nearest = candidates[0]
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise PrivilegeError(
            "the memory of a server cannot be limited here",
            detail=f"control groups cannot be made in {nearest} by this user",
            hint="run pgdyno as root, or choose a preset without a memory limit",
        )
    return GroupPlace(version, nearest)


def group_name(directory: Path, seat: str) -> str:
    """Return the name of a seat's group; it tells which scratch directory the group belongs to."""
    return f"{_name_prefix(directory)}{seat}"


def remove_recorded(directory: Path, hierarchies: Sequence[Path] | None = None) -> None:
    """Remove the groups that are recorded in a scratch directory.

    Their remaining processes are terminated.

    A record that names anything but a group of this directory in one of the ``hierarchies`` (None: those
    that are mounted) is only forgotten: processes are ended by what it says.

    Raises: ServerError if a group does not go.
    """
    places = _mounted_hierarchies() if hierarchies is None else hierarchies
    for record in directory.glob(f"*{RECORD_SUFFIX}"):
        group = Path(record.read_text(errors="replace").strip())
        is_below = ".." not in group.parts and any(place in group.parents for place in places)
        if is_below and group.name.startswith(_name_prefix(directory)):
            _remove(group)
        record.unlink()


def drop_from_page_cache(directory: Path) -> None:
    """Write back and forget all cached pages of the files below a directory."""
    for parent, _, names in os.walk(directory):
        for path in (Path(parent) / name for name in names):
            # The directory may belong to another user: links are not followed, pipes not waited for.
            if stat.S_ISREG(path.lstat().st_mode):
                drop_file_from_page_cache(path)


def drop_file_from_page_cache(path: Path) -> None:
    """Write back and forget the cached pages of a file, but for those that a process has mapped."""
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
    """Return which controllers the children of a version 2 group have."""
    file = group / "cgroup.subtree_control"
    return file.read_text().split() if file.is_file() else []


def _members(group: Path) -> list[int]:
    file = group / _MEMBERS
    pids = [int(line) for line in file.read_text().split()] if file.is_file() else []
    return [pid for pid in pids if pid > 0]  # 0 stands for a process outside of our PID namespace


def _kill(pid: int) -> None:
    # It may have ended by itself; the group of one that we must not end stays, which is told.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _remove(group: Path) -> None:
    """Remove a group and end its processes; the last ones may still be on their way out."""
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
                    hint=f"end the processes listed in {group / _MEMBERS}, then: rmdir {group}",
                ) from error
            time.sleep(_POLL_S)
