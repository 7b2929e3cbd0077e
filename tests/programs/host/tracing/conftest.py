"""A process for perf to look at."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest


@pytest.fixture
def busy() -> Iterator[int]:
    """A process that computes."""
    program = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
    yield program.pid
    program.kill()
    program.wait()
