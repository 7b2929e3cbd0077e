"""Durable, atomic replacement of files and links, which survives a power failure."""

from __future__ import annotations

import os
from pathlib import Path

from pgdyno.host.files.directory import Directory


def sync_directory(directory: Path) -> None:
    """Return when the names in a directory are on disk; a file's own fsync does not see to that: fsync(2)."""
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def replace_file(
    directory: Directory, name: str, content: bytes, mode: int, owner: tuple[int, int] | None
) -> None:
    """Let a file have this content, mode and owner (user, group), all at once.

    A process that is killed may leave ``written_beside`` it. Raises: OSError.
    """
    beside = written_beside(name)
    directory.remove(beside)
    directory.create(beside, content, mode, owner)
    directory.rename(beside, name)


def replace_link(directory: Directory, name: str, target: str) -> None:
    """Let a symbolic link lead elsewhere, all at once; as root its owner stays. Raises: OSError."""
    beside = written_beside(name)
    former = directory.status(name)
    directory.remove(beside)
    directory.create_link(beside, target, (former.st_uid, former.st_gid))
    directory.rename(beside, name)


def written_beside(name: str) -> str:
    """Return the temporary name of a file before it is renamed into place.

    Programs read *.conf and *.rules only.
    """
    return f"{name}.pgdyno-new"
