"""A data directory as far as the journal reads it, with the owner that a server's would have."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.unit.apply.receipts import TARGET

OWNER, GROUP = 4711, 4712
"""Of the files, where the tests run as root; otherwise they belong to whoever runs them."""


def data_directory(path: Path, auto_conf: bytes | None = None) -> Path:
    """Make the directory with its control file, and its postgresql.auto.conf if given."""
    (path / "global").mkdir(parents=True, exist_ok=True)
    head = int(TARGET.identity).to_bytes(8, sys.byteorder)
    (path / "global/pg_control").write_bytes(head + bytes(8184))
    if auto_conf is not None:
        (path / "postgresql.auto.conf").write_bytes(auto_conf)
    for one in (path, *path.rglob("*")):
        give_to_owner(one)
    return path


def give_to_owner(path: Path) -> Path:
    """Let a file belong to the server's user, as everything that servers make does."""
    if os.geteuid() == 0:
        os.lchown(path, OWNER, GROUP)
    return path
