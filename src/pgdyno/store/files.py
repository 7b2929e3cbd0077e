"""Write files atomically: a reader sees the old or the new file, never a part.

Of the files named by a user, only regular ones are opened: a pipe blocks, and a device may be endless.
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

_ORDINARY_MODE = 0o666  # before the umask, as with open()
_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_CLOEXEC  # does not open a device: opening some of them has side effects


def write_whole(path: Path, content: bytes, mode: int = _ORDINARY_MODE) -> None:
    """Write a file through a temporary file in the same directory. ``mode`` applies before the umask.

    The directory may belong to another user, who may exchange it or the temporary file at any time: all
    operations are relative to the opened directory, and files are only renamed and removed by name.
    Raises: StorageError if it cannot be written (no such directory, no permission, disk full); an existing
    file is then unchanged.
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
    """Open a regular file for reading; links are followed.

    Raises: OSError, also if it is not a regular file; its text then contains the remedy.
    """
    look = os.open(path, _LOOK)
    try:
        mode = os.fstat(look).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            words = "it is a pipe or a device: write its contents to a regular file, and name that one"
            raise OSError(errno.EINVAL, words, str(path))
        try:
            return Path(f"/proc/self/fd/{look}").open("rb")
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error  # the name given by the user
    finally:
        os.close(look)
