"""A private home for pgdyno's own files, where an unprivileged server can reach them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

Run = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def home() -> Iterator[Path]:
    """A PGDYNO_HOME for the whole session, so that data sets are loaded once."""
    path = Path(tempfile.mkdtemp(prefix="pgdyno-home-"))
    path.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGDYNO_HOME", str(path))
        patch.setenv("PGDYNO_AS_BOOTED", "1")  # tests run beside each other: one alone may keep CPUs awake
        yield path
    shutil.rmtree(path)


def pgdyno(*arguments: str, **environment: str) -> Run:
    """Run the command as a user would; returns its exit code, stdout and stderr."""
    return subprocess.run(
        [sys.executable, "-m", "pgdyno", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
        env={**os.environ, **environment},
    )
