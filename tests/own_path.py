"""A PATH with nothing on it but what a test puts there, and the programs that start others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

_STARTING = ("setpriv", "sh")


def set_own_path(monkeypatch: pytest.MonkeyPatch, directory: Path) -> None:
    """Let a directory be all of PATH."""
    directory.mkdir(exist_ok=True)
    for name in _STARTING:
        (directory / name).symlink_to(shutil.which(name) or pytest.skip(f"{name} is not installed"))
    monkeypatch.setenv("PATH", str(directory))
