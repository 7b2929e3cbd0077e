"""The program that keeps a CPU awake runs without pgdyno."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from pgdyno.host.probing import _spin_program


@pytest.fixture
def input_pipe() -> Iterator[int]:
    """A pipe as standard input; yields the end that is written to, which the test closes."""
    before = os.dup(0)
    reading, writing = os.pipe()
    os.dup2(reading, 0)
    os.close(reading)
    yield writing
    os.dup2(before, 0)
    os.close(before)


def test_spinning_ends_with_the_input(input_pipe: int) -> None:
    spinning = threading.Thread(target=_spin_program.spin)
    spinning.start()
    spinning.join(timeout=0.05)
    assert spinning.is_alive()
    os.close(input_pipe)
    spinning.join(timeout=120)
    assert not spinning.is_alive()
