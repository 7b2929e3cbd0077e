"""Remaining time of some work, extrapolated from the part that is done."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from pgdyno.base.ports import Progress

_TELLING_SHARE = 0.05  # of the work: what is expected from less is wild (measured: 9000 s instead of 400 s)
_REPORT_EVERY_S = 15.0  # arbitrary: seldom enough for a log, often enough for somebody who waits


@dataclass
class TimeLeft:
    """Work that begins now, of which the share ``found`` was done before."""

    progress: Progress
    found: float = 0.0
    clock: Callable[[], float] = time.monotonic
    _began_s: float = field(init=False)
    _told_s: float = field(default=-inf, init=False)

    def __post_init__(self) -> None:
        """Begin."""
        self._began_s = self.clock()

    def tell(self, share: float) -> None:
        """Tell how long it takes, now that this share is done; nothing so early or so soon after the last."""
        now_s, gained = self.clock(), share - self.found
        if gained < _TELLING_SHARE or now_s - self._told_s < _REPORT_EVERY_S:
            return
        self._told_s = now_s
        elapsed_s = now_s - self._began_s
        self.progress.advance(elapsed_s, elapsed_s * (1 - self.found) / gained)
