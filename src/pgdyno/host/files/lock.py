"""Journal lock: only one pgdyno process at a time works with a journal.

The kernel releases the lock when its holder exits.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pgdyno.base.errors import LockHeldError

_NOTE_BYTES = 32  # a fixed length, to overwrite a longer process id completely


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``, which contains the holder's process id.

    Raises: LockHeldError, naming the process that holds it; OSError if the file cannot be opened.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(file, _NOTE_BYTES, 0).decode().strip()
            raise _held(path, holder) from None
        with suppress(OSError):  # the process id is optional: a full disk must not prevent a revert
            os.pwrite(file, f"{os.getpid()}\n".ljust(_NOTE_BYTES).encode(), 0)
        yield
    finally:
        os.close(file)


def _held(path: Path, holder: str) -> LockHeldError:
    who = f"process {holder}" if holder else "a process that has not yet written its process id"
    return LockHeldError(
        "another pgdyno process is making changes on this host",
        detail=f"{who} holds {path}",
        hint="wait until it has ended, then see pgdyno status",
    )
