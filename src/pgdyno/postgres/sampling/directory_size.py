"""The size of a directory of files that come and go."""

from __future__ import annotations

import os
from pathlib import Path


def directory_bytes(directory: Path) -> int | None:
    """Return the apparent size of all below a directory, as ``du -b`` does; None if it is closed to us.

    Links are not followed. What disappears meanwhile is not counted.
    """
    try:
        return directory.stat().st_size + sum(map(_entry_bytes, os.scandir(directory)))
    except PermissionError:
        return None


def _entry_bytes(entry: os.DirEntry[str]) -> int:
    try:
        own = entry.stat(follow_symlinks=False).st_size
        if entry.is_dir(follow_symlinks=False):
            return own + sum(map(_entry_bytes, os.scandir(entry)))
    except FileNotFoundError:
        return 0
    return own
