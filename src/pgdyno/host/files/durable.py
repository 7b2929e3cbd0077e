"""Durable, atomic replacement of files and links, which survives a power failure."""

from __future__ import annotations

import os
from pathlib import Path

from pgdyno.host.files.directory import Directory


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
