"""Read source trees that may belong to another user.

Root copies a tree for the build account, and must not be tricked into copying files that only root may read.
Every file is opened relative to an open directory, no symbolic link is followed, and only regular files are
read. If a user other than root could have redirected the path, root reads with that user's rights.
"""

from __future__ import annotations

import errno
import os
import pwd
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Protocol, TypeAlias

from pgdyno.base.errors import RefusedError
from pgdyno.host.files.directory import UntrustedError, failure
from pgdyno.host.files.walk import Walk, acting_as, walk


class Kind(Enum):
    """Kind of a tree entry; its value is a part of the tree's checksum."""

    DIRECTORY = b"directory"
    LINK = b"link"
    PROGRAM = b"program"
    FILE = b"file"


@dataclass(frozen=True)
class TreeFile:
    """An entry of a tree. ``chunks`` is a file's content or a link's target; read it before the next entry.

    ``name`` is relative to the tree. ``changed_ns`` is the modification time, which make compares.
    """

    name: str
    kind: Kind
    size_bytes: int
    changed_ns: int
    chunks: Iterator[bytes]


class SourceTree(Protocol):
    """An open tree of source files."""

    def files(self, skipped: Collection[str] = ()) -> Iterator[TreeFile]:
        """Yield all entries in a fixed order, except those named in ``skipped``. Raises: OSError."""
        ...

    def names(self) -> Collection[str]:
        """Return the names of the top-level entries. Raises: OSError."""
        ...

    def has(self, name: str) -> bool:
        """Whether an entry of that name exists; the name may have slashes. Raises: OSError."""
        ...

    def text(self, name: str) -> str:
        """Return the text of a top-level file. Raises: OSError."""
        ...


OpenTree: TypeAlias = Callable[[Path], AbstractContextManager[SourceTree]]
"""Opens a tree. Raises: RefusedError, also for an entry refused while the tree is open."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # O_NONBLOCK: FIFOs
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHUNK_BYTES = 1 << 20
_MOST_BYTES = 4 << 30  # per tree: PostgreSQL's has 300 MB; a sparse file may be larger than the disk
_TEXT_BYTES = 8 << 20  # the largest text is configure, with 600 kB
_DEEPEST = 64  # arbitrary: PostgreSQL's tree is 8 levels deep
_EXECUTABLE = 0o111
_NOBODYS_GROUP = 65534


@dataclass(frozen=True)
class OwnersTree:
    """An open tree, read with the rights of ``user``."""

    descriptor: int
    user: int
    group: int

    def files(self, skipped: Collection[str] = ()) -> Iterator[TreeFile]:
        """Yield all entries in a fixed order, except those named in ``skipped``."""
        size_bytes = 0
        for file in self._below(self.descriptor, "", skipped):
            size_bytes += file.size_bytes
            if size_bytes > _MOST_BYTES:
                raise UntrustedError(f'the tree exceeds {_MOST_BYTES} bytes at "{file.name}"')
            yield file

    def names(self) -> Collection[str]:
        """Return the names of the top-level entries."""
        return os.listdir(self.descriptor)  # noqa: PTH208 — a Path has no descriptor

    def has(self, name: str) -> bool:
        """Whether an entry of that name exists."""
        try:
            with acting_as(self.user, self.group):
                os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def text(self, name: str) -> str:
        """Return the text of a top-level regular file, at most 8 MiB."""
        with self._opened(name, name, _READ, self.descriptor) as file:
            _require_plain(name, os.fstat(file))
            return os.read(file, _TEXT_BYTES).decode(errors="replace")

    def plain_file(self, name: str) -> Iterator[bytes]:
        """Yield the content of a top-level regular file."""
        with self._opened(name, name, _READ, self.descriptor) as file:
            _require_plain(name, status := os.fstat(file))
            yield from _chunks(file, name, status.st_size)

    def _below(self, directory: int, place: str, skipped: Collection[str]) -> Iterator[TreeFile]:
        if place.count("/") > _DEEPEST:
            raise UntrustedError(f'"{place}" is nested more than {_DEEPEST} levels deep')
        names = sorted(name for name in os.listdir(directory) if name not in skipped)
        kinds = {name: self._status(name, directory).st_mode for name in names}
        for name in names:
            if not stat.S_ISDIR(kinds[name]):
                yield from self._file(directory, name, place + name, kinds[name])
        for name in names:
            if stat.S_ISDIR(kinds[name]):
                with self._opened(name, place + name, _DIRECTORY, directory) as inner:
                    changed_ns = os.fstat(inner).st_mtime_ns
                    yield TreeFile(place + name, Kind.DIRECTORY, 0, changed_ns, iter(()))
                    yield from self._below(inner, f"{place}{name}/", skipped)

    def _file(self, directory: int, name: str, place: str, mode: int) -> Iterator[TreeFile]:
        if stat.S_ISLNK(mode):
            with acting_as(self.user, self.group):
                target = os.fsencode(os.readlink(name, dir_fd=directory))
            yield TreeFile(place, Kind.LINK, len(target), 0, iter((target,)))
            return
        with self._opened(name, place, _READ, directory) as file:
            status = os.fstat(file)
            _require_plain(place, status)
            kind = Kind.PROGRAM if status.st_mode & _EXECUTABLE else Kind.FILE
            chunks = _chunks(file, place, status.st_size)
            yield TreeFile(place, kind, status.st_size, status.st_mtime_ns, chunks)

    def _status(self, name: str, directory: int) -> os.stat_result:
        with acting_as(self.user, self.group):
            return os.stat(name, dir_fd=directory, follow_symlinks=False)

    @contextmanager
    def _opened(self, name: str, place: str, flags: int, directory: int) -> Iterator[int]:
        with acting_as(self.user, self.group):
            try:
                descriptor = os.open(name, flags, dir_fd=directory)
            except OSError as error:
                if error.errno == errno.ELOOP:
                    raise UntrustedError(f'"{place}" is a symbolic link', "name its target") from error
                if error.errno == errno.ENXIO:  # a socket
                    raise UntrustedError(f'"{place}" is not a regular file') from error
                raise OSError(error.errno, f"{place}: {error.strerror}") from error
        try:
            self._require_readable(place, os.fstat(descriptor))
            yield descriptor
        finally:
            os.close(descriptor)

    def _require_readable(self, place: str, status: os.stat_result) -> None:
        """Refuse a file that only root's groups may read: ``acting_as`` keeps the supplementary groups."""
        is_others = self.user not in (0, status.st_uid)
        if os.geteuid() == 0 and is_others and not status.st_mode & stat.S_IROTH:
            raise UntrustedError(
                f'"{place}" belongs to user {status.st_uid}, but the tree belongs to user {self.user}',
                f"change its owner to user {self.user}",
            )


@contextmanager
def opened_tree(path: Path, called: Path | None = None) -> Iterator[OwnersTree]:
    """Open the tree that a path leads to at this moment. Errors name ``called`` instead of ``path`` if given.

    Raises: RefusedError, also for an entry refused while the tree is open.
    """
    try:
        with walk(path) as reached:
            user, group = _reader(path, reached)
            if user in {link.st_uid for _, link in reached.links}:
                _require_reachable(path, reached, user, group)
            with acting_as(user, group):
                descriptor = os.open(".", _DIRECTORY, dir_fd=reached.descriptor)
            try:
                yield OwnersTree(descriptor, user, group)
            finally:
                os.close(descriptor)
    except OSError as error:
        raise failure(RefusedError, f'"{called or path}" cannot be used as source', error) from error


def plain_file(path: Path) -> Iterator[bytes]:
    """Yield the content of a regular file. Raises: RefusedError."""
    with opened_tree(path.parent, called=path) as tree:
        yield from tree.plain_file(path.name)


def _reader(path: Path, reached: Walk) -> tuple[int, int]:
    """Return the user, with its group, who could have redirected the path; root if only root could."""
    passed = [*reached.links, *reached.directories, (path, reached.status)]
    others = sorted({one.st_uid for _, one in passed} - {0})
    if os.geteuid() != 0 or not others:
        return os.geteuid(), os.getegid()
    if len(others) > 1:
        raise UntrustedError(
            f"users {' and '.join(map(str, others))} can all replace its content",
            "copy it to a directory that root or one of them owns",
        )
    try:
        return others[0], pwd.getpwuid(others[0]).pw_gid
    except KeyError:  # a user without a name
        return others[0], _NOBODYS_GROUP


def _require_reachable(path: Path, reached: Walk, user: int, group: int) -> None:
    """Refuse a place reached by a user's link through directories that this user cannot search."""
    with _without_groups_of_root(), acting_as(user, group), walk(path) as again:
        if not os.path.samestat(again.status, reached.status):
            raise UntrustedError(
                f'"{path}" was redirected while it was read', "name a path that does not change"
            )


@contextmanager
def _without_groups_of_root() -> Iterator[None]:
    """Drop root's groups, which may enter root's home directory on some distributions."""
    if os.geteuid() != 0:
        yield
        return
    former = os.getgroups()
    os.setgroups([])
    try:
        yield
    finally:
        os.setgroups(former)


def _require_plain(place: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UntrustedError(f'"{place}" is not a regular file', "remove it, or name a clean checkout")


def _chunks(file: int, place: str, size_bytes: int) -> Iterator[bytes]:
    while size_bytes:
        chunk = os.read(file, min(size_bytes, _CHUNK_BYTES))
        if not chunk:
            raise UntrustedError(f'"{place}" was truncated while it was read')
        size_bytes -= len(chunk)
        yield chunk
