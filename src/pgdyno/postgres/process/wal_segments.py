"""Future WAL segments for a stopped scratch server.

A server that has run for a while keeps them in the same way.

Without one, whoever fills a segment writes the next one full of zeros and flushes it, and all others wait:
about 50 ms every 16 MB. PostgreSQL makes them ahead in the same way (PreallocXlogFiles in xlog.c).
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
_LOG_BYTES = 1 << 32  # the last eight digits of a name count the segments within these
_CHUNK_BYTES = 1 << 20
_READ_LIMIT_S = 60.0  # arbitrary; it takes milliseconds
_PRIVATE = 0o077  # umask: files of a data directory are their owner's alone


@dataclass(frozen=True)
class WalPosition:
    """Where a stopped server will go on writing WAL."""

    timeline: int
    segment: int  # counted from the beginning of the WAL
    segment_bytes: int

    def following(self, count: int) -> list[str]:
        """Return the file names of the next segments, as XLogFileName in xlog_internal.h makes them."""
        per_log = _LOG_BYTES // self.segment_bytes
        numbers = range(self.segment + 1, self.segment + 1 + count)
        return [f"{self.timeline:08X}{number // per_log:08X}{number % per_log:08X}" for number in numbers]


def wal_position(controldata: str) -> WalPosition:
    """Parse the English output of ``pg_controldata``.

    Raises: ServerError if it does not say it.
    """
    name, size = _REDO_FILE.search(controldata), _SEGMENT_BYTES.search(controldata)
    if name is None or size is None:
        raise ServerError("pg_controldata names no WAL file or no segment size", detail=controldata.strip())
    timeline, log, within = (int(name[1][start : start + 8], 16) for start in (0, 8, 16))
    segment_bytes = int(size[1])
    return WalPosition(timeline, log * (_LOG_BYTES // segment_bytes) + within, segment_bytes)


def fill_ahead(
    installation: Installation, account: Account, data_directory: Path, zeros_directory: Path, wal_bytes: int
) -> None:
    """Give a stopped server's data directory segments for so much WAL, on disk when this returns.

    ``zeros_directory`` is the caller's own; the file of zeros that is copied stays there for the next time.
    Raises: ServerError with pg_controldata's words; StorageError if the disk is full.
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
        said = done.stderr.decode(errors="replace").strip()
        raise ServerError(f'pg_controldata could not read "{data_directory}"', detail=said)
    return wal_position(done.stdout.decode(errors="replace"))


def _zeros(directory: Path, size: int) -> Path:
    """Return a file of zeros that the account can read. It has no holes: a copy would have them too."""
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
    """Run a program as the servers' user: root writes nothing by name where that user could put a link."""
    done = account.run(argv, umask=_PRIVATE)
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()
        raise StorageError("could not write a WAL segment", detail=said[-800:])
