"""Records of databases that pgdyno makes on other people's servers: written before each is made.

A record is an empty file, ``SERVER/DATABASE`` below the workspace: the server's system identifier and the
database's name, which ends with random digits. A name without a record was not made from this workspace.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

_NAME = re.compile(r"pgdyno_[a-z0-9_]{1,55}")


@dataclass(frozen=True)
class DatabaseRecords:
    """The records of one server."""

    directory: Path

    def add(self, name: str) -> None:
        """Record a database that is about to be made; afterwards the record survives a loss of power."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        (self.directory / name).touch(exist_ok=False)
        for path in (self.directory, self.directory.parent, self.directory.parent.parent):
            _flush(path)

    def names(self) -> list[str]:
        """Return the names of all databases that were made, or were about to be, and not yet dropped."""
        if not self.directory.is_dir():
            return []
        return sorted(path.name for path in self.directory.iterdir() if _NAME.fullmatch(path.name))

    def remove(self, name: str) -> None:
        """Remove the record of a database that is not there any more."""
        (self.directory / name).unlink(missing_ok=True)


def _flush(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
