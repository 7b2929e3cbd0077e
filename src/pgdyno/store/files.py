"""Write whole files: a reader sees the old one or the new one, never a part.

Of files that a user has named, plain ones alone are opened. A pipe is waited for, and a device may not end.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from io import BufferedReader
from pathlib import Path

from pgdyno.base.errors import StorageError

_ORDINARY_MODE = 0o666  # before the umask: what open() would give
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_CLOEXEC  # opens no device: some do things when they are opened


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


def open_plain(path: Path) -> BufferedReader:
    """Open a file, which may be behind links, for reading.

    Raises: OSError, also for what is no plain file, with what to do in its words.
    """
    look = os.open(path, _LOOK)
    try:
        mode = os.fstat(look).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            words = "it is a pipe or a device: write what it gives to a plain file, and name that one"
            raise OSError(errno.EINVAL, words, str(path))
        try:
            return Path(f"/proc/self/fd/{look}").open("rb")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error  # the name that the user knows
    finally:
        os.close(look)
