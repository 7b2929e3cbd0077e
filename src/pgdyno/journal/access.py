"""How a server that is to be changed is reached: what the use cases hand to the journal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pgdyno.journal.query import Connect, Connection
from pgdyno.journal.server_files import ServerFiles, files_of
from pgdyno.model.journal import Target
from pgdyno.model.ports import Restarter

Steps: TypeAlias = Callable[[str], None]
"""Is told the name of every step right after it was taken, so that a test can stop the process there."""


def no_steps(_step: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class ServerAccess:
    """One server, and the journal that its receipts go to.

    ``data_directory`` is where this process finds the server's files, if that is not the path that the
    server itself names, or if the server is down. ``restarter`` None means that nobody said how to restart.
    """

    connect: Connect
    journal_directory: Path
    data_directory: Path | None = None
    restarter: Restarter | None = None

    def files(self, connection: Connection, target: Target) -> ServerFiles | None:
        """Return the running server's files if they are within reach and proven to be its own."""
        named = Path(target.data_directory) if target.data_directory else None
        path = self.data_directory or named
        return files_of(path, connection) if path is not None else None
