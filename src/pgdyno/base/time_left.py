"""The remaining time of a task, extrapolated from the part already done."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from math import inf

from pgdyno.base.ports import Progress

_LEAST_SHARE = 0.05  # of the work: estimates from less are far off (measured: 9000 s instead of 400 s)
_REPORT_EVERY_S = 15.0  # arbitrary: rare enough for a log, frequent enough for a waiting user


@dataclass
class TimeLeft:
    """A task that begins now, with the share ``found`` done before."""

    progress: Progress
    found: float = 0.0
    clock: Callable[[], float] = time.monotonic
    _began_s: float = field(init=False)
    _reported_s: float = field(default=-inf, init=False)

    def __post_init__(self) -> None:
        """Start the clock."""
        self._began_s = self.clock()

    def report(self, share: float) -> None:
        """Report elapsed and expected time after this share; skipped below 5 % or within 15 s of the last."""
        now_s, gained = self.clock(), share - self.found
        if gained < _LEAST_SHARE or now_s - self._reported_s < _REPORT_EVERY_S:
            return
        self._reported_s = now_s
        elapsed_s = now_s - self._began_s
        self.progress.advance(elapsed_s, elapsed_s * (1 - self.found) / gained)
