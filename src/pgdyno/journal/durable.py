"""What it takes for a file, new or changed, to survive a power failure."""

from __future__ import annotations

import os
from pathlib import Path


def sync_directory(directory: Path) -> None:
    """Return when the names in a directory are on disk; a file's own fsync does not see to that: fsync(2)."""
    file = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def replace_file(path: Path, content: bytes, mode: int, owner: tuple[int, int] | None) -> None:
    """Let a file have this content, mode and owner (user, group), all at once.

    A process that is killed may leave ``NAME.new`` beside it. Raises: OSError.
    """
    beside = written_beside(path)
    beside.unlink(missing_ok=True)
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        while content:
            content = content[os.write(file, content) :]
        if owner is not None:
            os.fchown(file, *owner)
        os.fchmod(file, mode)
        os.fsync(file)
    finally:
        os.close(file)
    beside.replace(path)
    sync_directory(path.parent)


def written_beside(path: Path) -> Path:
    """Return where a file is written before it takes its place; programs read *.conf and *.rules only."""
    return path.with_name(f"{path.name}.new")
