"""Safely read files owned by the servers' user, which root must not trust."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgdyno.base.errors import DataDirectoryError

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LIMIT_BYTES = 8192  # postmaster.pid and PG_VERSION have a few hundred
_PIECE_BYTES = 8 << 20
_END_BYTES = 1 << 20  # of a log; one statement may take hundreds of kilobytes


def read_own(path: Path) -> str:
    """Return the start of a regular file, up to 8 KiB. Links and FIFOs, a trap for root, are refused.

    Raises: FileNotFoundError; DataDirectoryError for anything else.
    """
    with _opened(path) as file:
        return os.read(file, _LIMIT_BYTES).decode(errors="replace")


def read_own_end(path: Path) -> str:
    """Return the last 1 MiB of a regular file: its owner may have filled the disk with it.

    Raises: as ``read_own``.
    """
    with _opened(path) as file:
        size_bytes = os.fstat(file).st_size
        return os.pread(file, _END_BYTES, max(0, size_bytes - _END_BYTES)).decode(errors="replace")


def read_own_whole(path: Path, limit_bytes: int) -> str:
    """Return a regular file's text, cut at ``limit_bytes``. Raises: as ``read_own``."""
    with _opened(path) as descriptor, open(descriptor, "rb", closefd=False) as file:
        return file.read(limit_bytes).decode(errors="replace")


def read_own_pieces(path: Path, begin: int, end: int) -> Iterator[bytes]:
    """Yield a regular file's bytes from offset ``begin`` to ``end``, in pieces. Raises: as ``read_own``."""
    with _opened(path) as file:
        while begin < end and (piece := os.pread(file, min(_PIECE_BYTES, end - begin), begin)):
            yield piece
            begin += len(piece)


def own_size_bytes(path: Path) -> int:
    """Return a regular file's current size. Raises: as ``read_own``."""
    with _opened(path) as file:
        return os.fstat(file).st_size


@contextmanager
def _opened(path: Path) -> Iterator[int]:
    try:
        file = os.open(path, _READ)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise DataDirectoryError(f'could not read "{path}"', detail=error.strerror) from error
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise DataDirectoryError(f'could not read "{path}"', detail="it is not a regular file")
        yield file
    finally:
        os.close(file)
