"""Journal lock: only one pgdyno process at a time works with a journal.

The kernel releases the lock when its holder dies.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pgdyno.base.errors import LockHeldError

_NOTE_BYTES = 32  # always as long, so that a shorter number leaves nothing of a longer one


@contextmanager
def exclusive_lock(path: Path) -> Iterator[None]:
    """Hold the lock file ``path``, which tells the holder's process id.

    Raises: LockHeldError naming that process if somebody else holds it; OSError if the file cannot be opened.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(file, _NOTE_BYTES, 0).decode().strip()
            raise _held(path, holder) from None
        with suppress(OSError):  # the lock holds without a note: a full disk does not keep a revert away
            os.pwrite(file, f"{os.getpid()}\n".ljust(_NOTE_BYTES).encode(), 0)
        yield
    finally:
        os.close(file)


def _held(path: Path, holder: str) -> LockHeldError:
    who = f"process {holder}" if holder else "a process that has not yet said its number"
    return LockHeldError(
        "another pgdyno is changing something on this host",
        detail=f"{who} holds {path}",
        hint="wait until it has ended, then see pgdyno status",
    )
