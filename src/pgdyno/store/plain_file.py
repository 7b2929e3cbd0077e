"""Open files that a user has named: plain ones alone. A pipe is waited for, and a device may not end."""

from __future__ import annotations

import errno
import os
import stat
from io import BufferedReader
from pathlib import Path

_LOOK = os.O_PATH | os.O_CLOEXEC  # opens no device: some do things when they are opened


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
