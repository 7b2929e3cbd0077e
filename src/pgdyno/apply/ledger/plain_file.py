"""Read a file that another user may have replaced by anything."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # O_NONBLOCK: a FIFO keeps nobody waiting


def read_plain(path: Path, limit_bytes: int | None) -> bytes:
    """Return the content of a plain file. Raises: OSError, also for anything else and for a larger one."""
    descriptor = os.open(path, _READ)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read() if limit_bytes is None else file.read(limit_bytes + 1)
    finally:
        os.close(descriptor)
    if limit_bytes is not None and len(content) > limit_bytes:
        raise OSError(errno.EFBIG, f"it has more than {limit_bytes} bytes")
    return content
