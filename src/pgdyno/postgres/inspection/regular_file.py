"""Read a file of a data directory: its owner may have put anything in its place."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_MOST_BYTES = 1 << 20  # as in host/files/directory.py: a file of settings has some kilobytes


def read_regular_file(path: Path) -> str:
    """Return a file's text; bytes that are no UTF-8 are replaced.

    Raises: OSError, also for what is no regular file or larger than 1 MiB: a FIFO or a device may not end.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "the name has a NUL byte in it", str(path))
    look = os.open(path, os.O_PATH | os.O_CLOEXEC)  # opens no device: some do things when they are opened
    try:
        if not stat.S_ISREG(os.fstat(look).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        content = _start_of(look, path)
    finally:
        os.close(look)
    if len(content) > _MOST_BYTES:
        raise OSError(errno.EFBIG, "it is larger than 1 MiB", str(path))
    return content.decode(errors="replace")


def _start_of(look: int, path: Path) -> bytes:
    try:
        with Path(f"/proc/self/fd/{look}").open("rb") as file:
            return file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # the name that the user knows
