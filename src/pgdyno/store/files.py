"""Writes whole files: a reader sees the old one or the new one, never a part."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from pgdyno.base.errors import StorageError

_ORDINARY_MODE = 0o666  # before the umask: what open() would give
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_whole(path: Path, content: bytes, mode: int = _ORDINARY_MODE) -> None:
    """Write a file through a temporary file in the same directory. ``mode`` is that before the umask.

    The directory may be another user's, who may exchange it or the temporary name at any moment: all happens
    in the directory as it was opened, and nothing is done to a file by its name but renaming and removing.
    Raises: StorageError if it cannot be written (no such directory, no permission, disk full); the file
    that was there before is then unchanged.
    """
    try:
        directory = os.open(path.parent, _DIRECTORY)
        try:
            _write_in(directory, path.name, content, mode)
        finally:
            os.close(directory)
    except OSError as error:
        raise StorageError(f'could not write "{path}"', detail=error.strerror or str(error)) from error


def _write_in(directory: int, name: str, content: bytes, mode: int) -> None:
    temporary = f".{name}.{secrets.token_hex(4)}"
    descriptor = os.open(temporary, _NEW, mode, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=directory)
        raise
