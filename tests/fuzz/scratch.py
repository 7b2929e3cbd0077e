"""One directory per process for readers that open files."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="pgdyno-fuzz-")


def file_with(name: str, content: bytes) -> Path:
    """Return a file with this content; the next call with the name writes over it."""
    path = Path(_directory().name) / name
    path.write_bytes(content)
    return path
