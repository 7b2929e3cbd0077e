"""The size of a directory with files that appear and disappear."""

from __future__ import annotations

import os
from pathlib import Path


def directory_bytes(directory: Path) -> int | None:
    """Return the apparent size of a directory tree, as ``du -b`` does; None if it is not readable.

    Links are not followed. Files that disappear during the scan are not counted.
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
