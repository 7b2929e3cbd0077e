"""SQLite files of pgdyno's own, which no older version may write to."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Literal

from pgdyno.model.errors import StorageError

_WAIT_S = 5.0  # for another process that writes; SQLite's own default


def open_sqlite(
    path: Path, called: str, newest: int, synchronous: Literal["NORMAL", "FULL"], wait_s: float = _WAIT_S
) -> tuple[sqlite3.Connection, int]:
    """Open a file, creating it at first use; return its version as well, 0 if it is new.

    Statements are transactions of their own. Raises: StorageError if its version is above the ``newest``
    that is known; sqlite3.DatabaseError.
    """
    connection = sqlite3.connect(path, isolation_level=None, timeout=wait_s)
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if found > newest:
        raise StorageError(
            f'{called} "{path}" was written by a newer pgdyno',
            detail=f"its version is {found}, this pgdyno reads up to {newest}",
            hint="upgrade pgdyno",
        )
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    return connection, found
