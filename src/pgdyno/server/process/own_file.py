"""Read a small file of the user that servers run as."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pgdyno.model.errors import DataDirectoryError

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LIMIT_BYTES = 8192  # postmaster.pid and PG_VERSION have some hundred


def read_own(path: Path) -> str:
    """Return the beginning of a plain file. Its owner could put a link or a FIFO there for root.

    Raises: FileNotFoundError; DataDirectoryError for anything else.
    """
    try:
        file = os.open(path, _READ)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataDirectoryError(f'could not read "{path}"', detail=error.strerror) from error
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise DataDirectoryError(f'could not read "{path}"', detail="it is not a plain file")
        return os.read(file, _LIMIT_BYTES).decode(errors="replace")
    finally:
        os.close(file)
