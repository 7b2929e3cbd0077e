"""Future WAL segments for a stopped scratch server, like those that a long-running server has recycled.

Without them, the backend that fills a segment zero-fills and flushes the next one, while all others wait:
about 50 ms every 16 MB. PostgreSQL preallocates them in the same way (PreallocXlogFiles in xlog.c).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import ServerError, StorageError
from pgdyno.postgres.process.account import Account
from pgdyno.postgres.process.installation import Installation

_REDO_FILE = re.compile(r"^Latest checkpoint's REDO WAL file:\s+([0-9A-F]{24})$", re.MULTILINE)
_SEGMENT_BYTES = re.compile(r"^Bytes per WAL segment:\s+(\d+)$", re.MULTILINE)
_LOG_BYTES = 1 << 32  # the last eight digits of a name number the segments within each 4 GiB
_CHUNK_BYTES = 1 << 20
_READ_LIMIT_S = 60.0  # arbitrary; it takes milliseconds
_PRIVATE = 0o077  # umask: files in a data directory are accessible only to their owner


@dataclass(frozen=True)
class WalPosition:
    """The position where a stopped server will continue its WAL."""

    timeline: int
    segment: int  # counted from the start of the WAL
    segment_bytes: int

    def following(self, count: int) -> list[str]:
        """Return the file names of the next segments, as XLogFileName in xlog_internal.h makes them."""
        per_log = _LOG_BYTES // self.segment_bytes
        numbers = range(self.segment + 1, self.segment + 1 + count)
        return [f"{self.timeline:08X}{number // per_log:08X}{number % per_log:08X}" for number in numbers]


def wal_position(controldata: str) -> WalPosition:
    """Parse the untranslated output of ``pg_controldata``. Raises: ServerError if a value is missing."""
    name, size = _REDO_FILE.search(controldata), _SEGMENT_BYTES.search(controldata)
    if name is None or size is None:
        raise ServerError("pg_controldata reports no WAL file or no segment size", detail=controldata.strip())
    timeline, log, within = (int(name[1][start : start + 8], 16) for start in (0, 8, 16))
    segment_bytes = int(size[1])
    return WalPosition(timeline, log * (_LOG_BYTES // segment_bytes) + within, segment_bytes)


def preallocate_segments(
    installation: Installation, account: Account, data_directory: Path, zeros_directory: Path, wal_bytes: int
) -> None:
    """Add segments for ``wal_bytes`` of WAL to a stopped server's data directory, and flush them to disk.

    ``zeros_directory`` belongs to the caller; the file of zeros stays there for later calls.
    Raises: ServerError with pg_controldata's message; StorageError if the disk is full.
    """
    position = _read_position(installation, account, data_directory)
    wal = data_directory / "pg_wal"
    names = position.following(-(-wal_bytes // position.segment_bytes))
    missing = [str(wal / name) for name in names if not os.path.lexists(wal / name)]
    zeros = _zeros(zeros_directory, position.segment_bytes)
    for path in missing:
        _run_as(account, ["cp", "--reflink=auto", str(zeros), path])
    if missing:
        _run_as(account, ["sync", *missing, str(wal)])


def _read_position(installation: Installation, account: Account, data_directory: Path) -> WalPosition:
    argv = [installation.program("pg_controldata"), str(data_directory)]
    done = account.run(argv, limit_s=_READ_LIMIT_S, environment={"LC_ALL": "C"})
    if done.returncode != 0:
        message = done.stderr.decode(errors="replace").strip()
        raise ServerError(f'pg_controldata could not read "{data_directory}"', detail=message)
    return wal_position(done.stdout.decode(errors="replace"))


def _zeros(directory: Path, size: int) -> Path:
    """Return a file of zeros that the account can read, without holes, which copies would also have."""
    path = directory / f"zeros-{size}"
    if path.is_file() and path.stat().st_size == size:
        return path
    try:
        with path.open("wb") as file:
            for _ in range(size // _CHUNK_BYTES):
                file.write(bytes(_CHUNK_BYTES))
            os.fsync(file.fileno())
    except OSError as error:
        raise StorageError("could not write a WAL segment", detail=str(error)) from error
    path.chmod(0o644)
    return path


def _run_as(account: Account, argv: Sequence[str]) -> None:
    """Run a program as the servers' user: root opens no paths where that user could place a link."""
    done = account.run(argv, umask=_PRIVATE)
    if done.returncode != 0:
        message = done.stderr.decode(errors="replace").strip()
        raise StorageError("could not write a WAL segment", detail=message[-800:])
