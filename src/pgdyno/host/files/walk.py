"""Follow a path name by name, and open files under another user's identity.

No name is looked up twice: each is opened relative to the descriptor of the previous one, and a symbolic link
is read through its own descriptor. Even if files are replaced during the walk, the report describes the files
that were actually passed.

setfsuid(2) and setfsgid(2) change the identity of the calling thread only. ``os.seteuid`` would change all
threads, some of which sample or log as root at the same time. With another user's identity the thread has
none of root's rights over files: capabilities(7), "effect of user ID changes". The supplementary groups
remain root's, so an opened file must also belong to that user. A thread started under the identity would keep
it: none is started.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_MOST_LINKS = 40  # like the kernel: path_resolution(7)
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC  # O_PATH: opens any kind of file without reading or blocking


@dataclass
class Walk:
    """Where a path leads: ``descriptor`` and ``status`` are those of the place reached.

    ``links`` and ``directories`` are those on the path, each with its status.
    """

    descriptor: int
    status: os.stat_result
    links: list[tuple[Path, os.stat_result]] = field(default_factory=list)
    directories: list[tuple[Path, os.stat_result]] = field(default_factory=list)

    def move(self, descriptor: int) -> None:
        """Continue from another descriptor, which this object closes from now on."""
        os.close(self.descriptor)
        self.descriptor, self.status = descriptor, os.fstat(descriptor)


@contextmanager
def walk(path: Path, *, may_be_file: bool = False) -> Iterator[Walk]:
    """Open the directory that a path leads to; with ``may_be_file``, a file of any kind.

    Raises: OSError, with ENOTDIR for a file without ``may_be_file``, and ELOOP for more links than the kernel
    follows.
    """
    start = os.open("/", _LOOK)
    reached = Walk(start, os.fstat(start))
    try:
        _follow(reached, path, may_be_file=may_be_file)
        yield reached
    finally:
        os.close(reached.descriptor)


def _follow(reached: Walk, path: Path, *, may_be_file: bool) -> None:
    place, left = Path("/"), list(path.absolute().parts[:0:-1])
    while left:
        name = left.pop()
        inner = os.open(name, _LOOK, dir_fd=reached.descriptor)
        if not stat.S_ISLNK(os.fstat(inner).st_mode):
            reached.directories.append((place, reached.status))
            place = place / name
            reached.move(inner)
            if left or not may_be_file:
                _require_directory(reached, place)
            continue
        target = _read_link(reached, inner, place / name)
        left += [part for part in target.parts[::-1] if part != target.anchor]
        if target.is_absolute():
            reached.directories.append((place, reached.status))
            reached.move(os.open("/", _LOOK))
            place = Path("/")


def _read_link(reached: Walk, link: int, place: Path) -> Path:
    """Return an open link's target, record its status, and close it."""
    try:
        reached.links.append((place, os.fstat(link)))
        if len(reached.links) > _MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(place))
        return Path(os.readlink("", dir_fd=link))
    finally:
        os.close(link)


def _require_directory(reached: Walk, place: Path) -> None:
    if not stat.S_ISDIR(reached.status.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))


_LIBC = ctypes.CDLL(None)
_QUERY = -1  # an invalid id: the call changes nothing and returns the current one


@contextmanager
def acting_as(uid: int, gid: int) -> Iterator[None]:
    """As root, give this thread another user's rights over files; for other users, change nothing.

    Raises: OSError if the kernel does not allow the change.
    """
    if os.geteuid() != 0 or uid == 0:
        yield
        return
    former = _LIBC.setfsuid(_QUERY), _LIBC.setfsgid(_QUERY)
    try:
        _become(uid, gid)
        yield
    finally:
        _become(*former)


def _become(uid: int, gid: int) -> None:
    """Set both ids, and query them afterwards, since the calls report no error."""
    _LIBC.setfsuid(uid)
    _LIBC.setfsgid(gid)
    if (_LIBC.setfsuid(_QUERY), _LIBC.setfsgid(_QUERY)) != (uid, gid):
        raise OSError(errno.EPERM, f"the kernel does not allow acting as user {uid}, group {gid}")
