"""A private home for pgdyno's own files, where an unprivileged server can reach them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from tests.preloaded import PreloadedPgdyno

from pgdyno.postgres.process import local_machine
from pgdyno.postgres.process.account import caller
from pgdyno.postgres.process.installation import Installation
from pgdyno.studies import variant_settings

Run = subprocess.CompletedProcess[str]

_LIMIT_S = 280
_AT_START = dict(os.environ)  # before any test changes it


@pytest.fixture(scope="session")
def home() -> Iterator[Path]:
    """A PGDYNO_HOME for the whole session, so that data sets are loaded once."""
    with home_below(Path(tempfile.gettempdir())) as path:
        yield path


@contextmanager
def home_below(directory: Path) -> Iterator[Path]:
    """Make a PGDYNO_HOME, and remove it at the end."""
    path = Path(tempfile.mkdtemp(prefix="pgdyno-home-", dir=directory))
    path.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGDYNO_HOME", str(path))
        patch.setenv("PGDYNO_AS_BOOTED", "1")  # tests run beside each other: one alone may keep CPUs awake
        yield path
    shutil.rmtree(path)


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PGDYNO_HOME of one test's own. Its servers run as the caller: to others the directory is closed."""
    path = tmp_path / "home"
    path.mkdir(mode=0o755)
    monkeypatch.setenv("PGDYNO_HOME", str(path))
    monkeypatch.setattr(local_machine, "current_account", caller)
    return path


def name_servers(monkeypatch: pytest.MonkeyPatch, found: Callable[[str], Installation]) -> None:
    """Let ``found`` say which installation the server of a variant is."""
    monkeypatch.setattr(variant_settings, "find_installation", lambda name, _place: found(name))


def pgdyno(*arguments: str, **environment: str) -> Run:
    """Run the command as a user would; returns its exit code, stdout and stderr."""
    wanted, command = {**os.environ, **environment}, [sys.executable, "-m", "pgdyno", *arguments]
    if _preloaded().can_run(wanted):
        return _preloaded().run(arguments, wanted, _LIMIT_S)
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=_LIMIT_S, env=wanted)


@cache
def _preloaded() -> PreloadedPgdyno:
    return PreloadedPgdyno(_AT_START)
