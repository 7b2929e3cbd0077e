"""A directory, opened once; operations use its descriptor and its owner's rights.

Root works in directories of others: a cluster's files belong to postgres, who may exchange a directory or a
file for a symbolic link at any moment. Looking first and working afterwards is therefore never safe. Here the
path is walked once, every link on it is read through its own descriptor, and what is reached is proven by
whom it belongs to; its owner's rights decide over the rest, so that nothing happens that he could not do.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import PgdynoError
from pgdyno.host.files.file_identity import acting_as
from pgdyno.host.files.walk import Walk, walk

LIMIT_BYTES = 1 << 20
"""Of a configuration file. ALTER SYSTEM's has a line for each setting: some 30 kB with all of them."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # O_NONBLOCK: FIFOs, leases of fcntl(2)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class UntrustedError(OSError):
    """A file or directory that is not trusted, regardless of kernel permissions.

    ``hint`` says how to proceed.
    """

    def __init__(self, why: str, hint: str | None = None) -> None:
        super().__init__(errno.EINVAL, why)
        self.hint = hint


@dataclass(frozen=True)
class Directory:
    """An open directory, with its owner and group. All methods raise OSError, UntrustedError among them."""

    descriptor: int
    owner: int
    group: int

    def status(self, name: str) -> os.stat_result:
        """Return the status of an entry, without following links."""
        with acting_as(self.owner, self.group):
            return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)

    def has(self, name: str) -> bool:
        """Whether there is an entry of that name."""
        try:
            self.status(name)
        except FileNotFoundError:
            return False
        return True

    def read(self, name: str) -> tuple[bytes, os.stat_result]:
        """Return the content of a plain file of the directory's owner, its mode and owner."""
        content, status = self._start(name, LIMIT_BYTES + 1)
        if len(content) > LIMIT_BYTES:
            raise UntrustedError(f'"{name}" has more than {LIMIT_BYTES} bytes, the most that is read of it')
        return content, status

    def read_start(self, name: str, size_bytes: int) -> bytes:
        """Return the first bytes of a plain file of the directory's owner."""
        return self._start(name, size_bytes)[0]

    def create(self, name: str, content: bytes, mode: int, owner: tuple[int, int] | None) -> None:
        """Write a new file with this mode and owner (user, group), and return when it is on disk."""
        if owner is not None and _is_other(owner[0], self.owner):
            raise _foreign(name, owner[0], self.owner)
        with acting_as(self.owner, self.group if owner is None else owner[1]):
            file = os.open(name, _CREATE, 0o600, dir_fd=self.descriptor)
            try:
                while content:
                    content = content[os.write(file, content) :]
                if owner is not None:
                    os.fchown(file, *owner)
                os.fchmod(file, mode)
                os.fsync(file)
            finally:
                os.close(file)

    def create_link(self, name: str, target: str, owner: tuple[int, int]) -> None:
        """Make a symbolic link that leads to ``target``; as root it belongs to ``owner`` (user, group)."""
        with acting_as(self.owner, self.group):
            os.symlink(target, name, dir_fd=self.descriptor)
        if os.geteuid() != 0:
            return
        link = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=self.descriptor)
        try:
            is_link = stat.S_ISLNK(os.fstat(link).st_mode)
            if not is_link or os.readlink("", dir_fd=link) != target:  # a link's target never changes
                raise UntrustedError(f'another process has replaced "{name}"')
            os.chown(f"/proc/self/fd/{link}", *owner)
        finally:
            os.close(link)

    def rename(self, name: str, to: str) -> None:
        """Let an entry take the place of another one, and return when that is on disk."""
        with acting_as(self.owner, self.group):
            os.replace(name, to, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
            with _opened(".", _DIRECTORY, self.descriptor) as readable:
                os.fsync(readable)

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        with acting_as(self.owner, self.group), suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)

    def link_target(self, name: str) -> str:
        """Return where a symbolic link leads."""
        with acting_as(self.owner, self.group):
            return os.readlink(name, dir_fd=self.descriptor)

    @contextmanager
    def inner(self, name: str) -> Iterator[Directory]:
        """Provide a directory in this one, which has to belong to the same user."""
        flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        with acting_as(self.owner, self.group):
            descriptor = os.open(name, flags, dir_fd=self.descriptor)
        try:
            status = os.fstat(descriptor)
            if _is_other(status.st_uid, self.owner):
                raise _foreign(name, status.st_uid, self.owner)
            yield Directory(descriptor, status.st_uid, status.st_gid)
        finally:
            os.close(descriptor)

    def _start(self, name: str, size_bytes: int) -> tuple[bytes, os.stat_result]:
        with acting_as(self.owner, self.group):
            try:
                with _opened(name, _READ, self.descriptor) as file:
                    return self._start_of(file, name, size_bytes)
            except OSError as error:
                if error.errno == errno.ELOOP:
                    raise UntrustedError(f'"{name}" is a symbolic link') from error
                raise

    def _start_of(self, file: int, name: str, size_bytes: int) -> tuple[bytes, os.stat_result]:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise UntrustedError(f'"{name}" is not a plain file')
        if _is_other(status.st_uid, self.owner):
            raise _foreign(name, status.st_uid, self.owner)
        with os.fdopen(file, "rb", closefd=False) as stream:
            return stream.read(size_bytes), status


@contextmanager
def opened_directory(path: Path) -> Iterator[Directory]:
    """Provide the directory that a path leads to at this moment.

    Raises: OSError; UntrustedError, as root, if somebody could have led the path there who is neither root
    nor the directory's owner.
    """
    with walk(path) as reached:
        directory = Directory(reached.descriptor, reached.status.st_uid, reached.status.st_gid)
        _require_trusted(path, reached, directory.owner)
        yield directory


@contextmanager
def roots_directory(path: Path) -> Iterator[Directory]:
    """Provide a directory like ``opened_directory``; as root only one of root's own.

    Raises: OSError, UntrustedError.
    """
    with opened_directory(path) as directory:
        if os.geteuid() == 0 and directory.owner != 0:
            raise UntrustedError(
                f"directory {path} belongs to user {directory.owner}, not to root",
                f"give it to root, as your system's packages do: chown root {path}",
            )
        yield directory


def failure(kind: type[PgdynoError], message: str, error: OSError) -> PgdynoError:
    """Return an error of ours that says why the system, or this module, has refused."""
    hint = error.hint if isinstance(error, UntrustedError) else None
    return kind(message, detail=error.strerror, hint=hint)


@contextmanager
def _opened(name: str, flags: int, directory: int) -> Iterator[int]:
    descriptor = os.open(name, flags, dir_fd=directory)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _require_trusted(path: Path, reached: Walk, owner: int) -> None:
    """Refuse a path that users other than root and the directory's owner can redirect.

    Directories of other users on the way matter only to a directory of root's: nobody but its owner can move
    a directory into another one, and a link in its place is seen.
    """
    if os.geteuid() != 0:
        return
    for place, link in reached.links:
        if link.st_uid not in (0, owner):
            raise UntrustedError(
                f"the symbolic link {place} belongs to user {link.st_uid}, and {path} leads by it to a "
                f"directory of user {owner}",
                "name the directory by a path without that link",
            )
    for place, above in reached.directories:
        if owner == 0 != above.st_uid:
            raise UntrustedError(
                f"directory {path} belongs to root, and {place} above it to user {above.st_uid}",
                "root changes only files that lie in root's own directories",
            )


def _is_other(uid: int, owner: int) -> bool:
    """Whether root must not take a file in that owner's directory for his own."""
    return os.geteuid() == 0 and owner not in (0, uid)


def _foreign(name: str, uid: int, owner: int) -> UntrustedError:
    return UntrustedError(
        f'"{name}" belongs to user {uid}, and its directory to user {owner}',
        f"let it belong to user {owner}, as the server needs it",
    )
