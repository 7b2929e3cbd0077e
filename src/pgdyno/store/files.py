"""Writes whole files: a reader sees the old one or the new one, never a part."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from pgdyno.model.errors import StorageError

_ORDINARY_MODE = 0o666  # before the umask: what open() would give


def write_whole(path: Path, content: bytes) -> None:
    """Write a file through a temporary file in the same directory.

    Raises: StorageError if it cannot be written (no such directory, no permission, disk full); the file
    that was there before is then unchanged.
    """
    temporary: str | None = None
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(_ORDINARY_MODE & ~_umask())
        Path(temporary).replace(path)
    except OSError as error:
        if temporary is not None:
            with contextlib.suppress(FileNotFoundError):
                Path(temporary).unlink()
        raise StorageError(f'could not write "{path}"', detail=error.strerror or str(error)) from error


def _umask() -> int:
    """Return the umask, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
