"""Unit tests start no program: what needs one is in ``tests/programs``."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

_STARTING = {"subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.system", "os.exec"}
"""Audit events of starting a process: PEP 578, and Python's list of audit events."""

_started: list[str] = []


def _watch(event: str, arguments: tuple[object, ...]) -> None:
    if event in _STARTING:
        _started.append(f"{event} {arguments[:2]}")


sys.addaudithook(_watch)


@pytest.fixture(autouse=True)
def starts_no_program() -> Iterator[None]:
    """Fail a test that starts a process, itself or by what it calls."""
    _started.clear()
    yield
    assert not _started, f"a unit test starts {_started[0]}: move it to tests/programs, at the same place"
