"""A directory, opened once; operations use its descriptor and its owner's permissions.

Root works in other users' directories: a cluster's files belong to postgres, who may replace a directory or
file with a symbolic link at any moment. Checking a path and then using it is therefore never safe. This
module walks the path once, reads every symbolic link through its own descriptor, and checks the owner of the
directory reached. Operations then have the owner's permissions, and can do nothing that the owner could not.
Files and links are replaced atomically, and the replacement survives a power failure.
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
from pgdyno.host.files.walk import Walk, acting_as, walk

LIMIT_BYTES = 1 << 20
"""Largest configuration file. postgresql.auto.conf with a line for every setting has about 30 kB."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # O_NONBLOCK: FIFOs, fcntl(2) leases
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class UntrustedError(OSError):
    """A file or directory that is not trusted, regardless of kernel permissions. ``hint`` is the remedy."""

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
        """Whether an entry of that name exists."""
        try:
            self.status(name)
        except FileNotFoundError:
            return False
        return True

    def read(self, name: str) -> tuple[bytes, os.stat_result]:
        """Return the content and status of a regular file that belongs to the directory's owner."""
        content, status = self._start(name, LIMIT_BYTES + 1)
        if len(content) > LIMIT_BYTES:
            raise UntrustedError(f'"{name}" is larger than the limit of {LIMIT_BYTES} bytes')
        return content, status

    def read_start(self, name: str, size_bytes: int) -> bytes:
        """Return the first bytes of a regular file that belongs to the directory's owner."""
        return self._start(name, size_bytes)[0]

    def create(self, name: str, content: bytes, mode: int, owner: tuple[int, int] | None) -> None:
        """Write a new file with this mode and owner (user, group), and wait until it is on disk."""
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
        """Make a symbolic link to ``target``; as root, give it to ``owner`` (user, group)."""
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
        """Rename an entry, replacing one of the new name, and wait until the change is on disk."""
        with acting_as(self.owner, self.group):
            os.replace(name, to, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
            with _opened(".", _DIRECTORY, self.descriptor) as readable:
                os.fsync(readable)

    def remove(self, name: str) -> None:
        """Remove a file if it exists."""
        with acting_as(self.owner, self.group), suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)

    def link_target(self, name: str) -> str:
        """Return the target of a symbolic link."""
        with acting_as(self.owner, self.group):
            return os.readlink(name, dir_fd=self.descriptor)

    @contextmanager
    def inner(self, name: str) -> Iterator[Directory]:
        """Open a subdirectory, which must belong to the same user."""
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
            raise UntrustedError(f'"{name}" is not a regular file')
        if _is_other(status.st_uid, self.owner):
            raise _foreign(name, status.st_uid, self.owner)
        with os.fdopen(file, "rb", closefd=False) as stream:
            return stream.read(size_bytes), status


@contextmanager
def opened_directory(path: Path) -> Iterator[Directory]:
    """Open the directory that a path leads to at this moment.

    Raises: OSError; UntrustedError, as root, if a user other than root and the directory's owner could have
    redirected the path.
    """
    with walk(path) as reached:
        directory = Directory(reached.descriptor, reached.status.st_uid, reached.status.st_gid)
        _require_trusted(path, reached, directory.owner)
        yield directory


@contextmanager
def roots_directory(path: Path) -> Iterator[Directory]:
    """Open a directory like ``opened_directory``; as root, only one that root owns.

    Raises: OSError, UntrustedError.
    """
    with opened_directory(path) as directory:
        if os.geteuid() == 0 and directory.owner != 0:
            raise UntrustedError(
                f"directory {path} belongs to user {directory.owner}, not to root",
                f"give it to root, as in your system's packages: chown root {path}",
            )
        yield directory


def failure(kind: type[PgdynoError], message: str, error: OSError) -> PgdynoError:
    """Return a pgdyno error with the reason of the system's or this module's ``error`` as detail."""
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

    Other users' directories on the path matter only for a directory of root's: only its owner can move a
    directory elsewhere, and a link in its place is detected.
    """
    if os.geteuid() != 0:
        return
    for place, link in reached.links:
        if link.st_uid not in (0, owner):
            raise UntrustedError(
                f"the symbolic link {place} belongs to user {link.st_uid}, but it leads {path} to a "
                f"directory of user {owner}",
                "name the directory by a path without that link",
            )
    for place, above in reached.directories:
        if owner == 0 != above.st_uid:
            raise UntrustedError(
                f"directory {path} belongs to root, but its parent {place} belongs to user {above.st_uid}",
                "as root, pgdyno changes only files below directories that root owns",
            )


def _is_other(uid: int, owner: int) -> bool:
    """Whether, as root, a file of ``uid`` must not be trusted in ``owner``'s directory."""
    return os.geteuid() == 0 and owner not in (0, uid)


def _foreign(name: str, uid: int, owner: int) -> UntrustedError:
    return UntrustedError(
        f'"{name}" belongs to user {uid}, but its directory belongs to user {owner}',
        f"change its owner to user {owner}, as the server requires",
    )


def sync_directory(directory: Path) -> None:
    """Wait until a directory's entries are on disk; fsync of a file does not ensure that: fsync(2)."""
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def replace_file(
    directory: Directory, name: str, content: bytes, mode: int, owner: tuple[int, int] | None
) -> None:
    """Atomically give a file this content, mode and owner (user, group).

    A killed process may leave the temporary file ``temporary_name(name)``. Raises: OSError.
    """
    temporary = temporary_name(name)
    directory.remove(temporary)
    directory.create(temporary, content, mode, owner)
    directory.rename(temporary, name)


def replace_link(directory: Directory, name: str, target: str) -> None:
    """Atomically change the target of a symbolic link; as root, keep its owner. Raises: OSError."""
    temporary = temporary_name(name)
    former = directory.status(name)
    directory.remove(temporary)
    directory.create_link(temporary, target, (former.st_uid, former.st_gid))
    directory.rename(temporary, name)


def temporary_name(name: str) -> str:
    """Return the temporary name of a file before it is renamed into place.

    Its suffix hides it from programs, which read only *.conf and *.rules.
    """
    return f"{name}.pgdyno-new"
