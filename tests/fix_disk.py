"""A file system that is small enough to be filled up."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class SmallDisk:
    """A tmpfs of its own. It writes as much of a block as fits, and then says that it is full."""

    directory: Path

    @property
    def _ballast(self) -> Path:
        return self.directory / "ballast"

    def fill(self) -> None:
        """Take all the room that is left; what is in a file's last page stays writable."""
        with self._ballast.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                return

    def empty(self) -> None:
        """Give the room back."""
        self._ballast.unlink()


@contextmanager
def small_disk(size_bytes: int = 1 << 18) -> Iterator[SmallDisk]:
    """Mount a small file system, or skip the test where that is not possible."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system takes root")
    directory = Path(tempfile.mkdtemp(prefix="pgdyno-small-"))
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size_bytes},mode=755", "tmpfs", str(directory)]
    try:
        if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
            pytest.skip("this environment does not allow mounts")
        try:
            yield SmallDisk(directory)
        finally:
            subprocess.run(["umount", str(directory)], check=True)
    finally:
        directory.rmdir()
