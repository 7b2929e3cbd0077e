"""System calls for the kernel's resctrl file system: mounting it, and making groups.

A directory made in it is a group of tasks, which the kernel fills with files. Removing the directory returns
its tasks to the default group.

Source: Linux, Documentation/filesystems/resctrl.rst.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from pgdyno.base.errors import ServerError
from pgdyno.host.cache_allocation import RESCTRL

_TIMEOUT_S = 30.0  # arbitrary; the kernel takes milliseconds


@dataclass(frozen=True)
class Resctrl:
    """The file system below ``root``: ``/``, or in tests a directory that imitates a machine."""

    root: Path = Path("/")

    def mount(self, *, with_cdp: bool) -> None:
        """Mount the file system. Raises: ServerError with mount's message."""
        options = ["-o", "cdp"] if with_cdp else []
        _run(["mount", "-t", "resctrl", *options, "resctrl", RESCTRL])

    def unmount(self) -> None:
        """Unmount it, which gives all tasks the whole cache. Raises: ServerError."""
        _run(["umount", RESCTRL])

    def make_group(self, path: str) -> None:
        """Make a group. Raises: OSError: FileExistsError, ENOSPC if the processor supports no more groups."""
        os.mkdir(self.root / path.lstrip("/"))  # noqa: PTH102 — as remove_group

    def remove_group(self, path: str) -> None:
        """Remove a group; its files are the kernel's and need no removal. Raises: OSError."""
        os.rmdir(self.root / path.lstrip("/"))  # noqa: PTH106 — pathlib would do the same


def _run(argv: list[str]) -> None:
    line = " ".join(argv)
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, errors="replace", check=False, timeout=_TIMEOUT_S
        )
    except OSError as error:
        raise ServerError(f"could not run {line}", detail=error.strerror) from error
    except subprocess.TimeoutExpired as error:
        raise ServerError(f"{line} did not end within {_TIMEOUT_S:.0f} s") from error
    if done.returncode != 0:
        raise ServerError(f"{line} failed", detail=done.stderr.strip() or None)
