"""Restarts after which a server does not come back: it is waited for in vain, which takes no time here."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

LIMIT_S = 60.0  # for the restart command, too, which may begin late on a busy machine


@dataclass
class HastyClock:
    """The time, of which a pause of any length takes ``LIMIT_S`` at once."""

    skipped_s: float = 0.0

    def monotonic(self) -> float:
        """Return the time."""
        return time.monotonic() + self.skipped_s

    def sleep(self, _duration_s: float) -> None:
        """Have the time pass."""
        self.skipped_s += LIMIT_S


@contextmanager
def in_vain() -> Iterator[None]:
    """Let whoever waits for a server after its restart give up after the first look."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pgdyno.apply.session.restart.time", HastyClock())
        yield
