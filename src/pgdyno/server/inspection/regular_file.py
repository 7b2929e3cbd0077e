"""Read a file of a data directory: its owner may have put anything in its place."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_MOST_BYTES = 1 << 20  # as in journal/files/directory.py: a file of settings has some kilobytes


def read_regular_file(path: Path) -> str:
    """Return a file's text; bytes that are no UTF-8 are replaced.

    Raises: OSError, also for what is no regular file or larger than 1 MiB: a FIFO or a device may not end.
    """
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "the name has a NUL byte in it", str(path))
    with open(path, "rb", opener=_without_waiting) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        content = file.read(_MOST_BYTES + 1) or b""
    if len(content) > _MOST_BYTES:
        raise OSError(errno.EFBIG, "it is larger than 1 MiB", str(path))
    return content.decode(errors="replace")


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a FIFO's other end is not waited for."""
    return os.open(path, flags | os.O_NONBLOCK)
