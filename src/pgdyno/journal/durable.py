"""What it takes for a file, new or changed, to survive a power failure, and to be the file that was meant.

Root replaces files in directories that belong to others (a cluster's configuration belongs to postgres).
Such a directory could be exchanged for a symbolic link while we look: it is opened once, without following
any, and everything is done in what was opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_LIMIT_BYTES = 1 << 20  # arbitrary: of a configuration file; reading more would give its owner time


def sync_directory(directory: Path) -> None:
    """Return when the names in a directory are on disk; a file's own fsync does not see to that: fsync(2)."""
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


@contextmanager
def opened_directory(directory: Path) -> Iterator[int]:
    """Provide a directory's descriptor; what lies behind links now is opened without following any then.

    Raises: OSError, ELOOP or ENOTDIR among them if anybody exchanges a part of its path meanwhile.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    real = directory.resolve(strict=True)
    file = os.open(real.anchor, flags)
    try:
        for part in real.parts[1:]:
            inner = os.open(part, flags, dir_fd=file)
            os.close(file)
            file = inner
        yield file
    finally:
        os.close(file)


def read_file(path: Path) -> tuple[bytes, os.stat_result]:
    """Return a file's content, and its mode and owner; a link is not followed. Raises: OSError."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with opened_directory(path.parent) as directory:
        file = os.open(path.name, flags, dir_fd=directory)
        with os.fdopen(file, "rb") as stream:
            return stream.read(_LIMIT_BYTES), os.fstat(file)


def replace_file(path: Path, content: bytes, mode: int, owner: tuple[int, int] | None) -> None:
    """Let a file have this content, mode and owner (user, group), all at once.

    A process that is killed may leave ``written_beside`` it. Raises: OSError.
    """
    beside = written_beside(path).name
    with opened_directory(path.parent) as directory:
        remove_leftover(path, directory)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        file = os.open(beside, flags, 0o600, dir_fd=directory)
        try:
            while content:
                content = content[os.write(file, content) :]
            if owner is not None:
                os.fchown(file, *owner)
            os.fchmod(file, mode)
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(beside, path.name, src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)


def replace_link(path: Path, target: str) -> None:
    """Let a symbolic link lead elsewhere, all at once; as root its owner stays. Raises: OSError."""
    beside = written_beside(path).name
    with opened_directory(path.parent) as directory:
        former = os.stat(path.name, dir_fd=directory, follow_symlinks=False)
        remove_leftover(path, directory)
        os.symlink(target, beside, dir_fd=directory)
        if os.geteuid() == 0:
            os.chown(beside, former.st_uid, former.st_gid, dir_fd=directory, follow_symlinks=False)
        os.replace(beside, path.name, src_dir_fd=directory, dst_dir_fd=directory)
        os.fsync(directory)


def remove_leftover(path: Path, directory: int) -> None:
    """Remove what a process that was killed while it replaced a file has left beside it. Raises: OSError."""
    with suppress(FileNotFoundError):
        os.unlink(written_beside(path).name, dir_fd=directory)


def written_beside(path: Path) -> Path:
    """Return where a file is written before it takes its place; programs read *.conf and *.rules only."""
    return path.with_name(f"{path.name}.pgdyno-new")
