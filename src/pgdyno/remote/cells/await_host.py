"""Wait for a lost load host: retry until it can issue load again."""

from __future__ import annotations

import time
from collections.abc import Callable

from pgdyno.base.errors import RemoteHostError
from pgdyno.base.ports import Progress
from pgdyno.remote.cells.reach import ReachedLoadHost

AWAITED_S = 600.0  # arbitrary: a server's firmware and system take minutes to start
_EVERY_S = 5.0  # arbitrary: ssh's own connection timeout is 10 s
_REPORT_EVERY_S = 15.0  # infrequent enough for a log


def await_host(
    name: str,
    reach: Callable[[], ReachedLoadHost],
    progress: Progress,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> ReachedLoadHost:
    """Return the host once it is reached; meanwhile report the error and the time waited.

    Raises: RemoteHostError, the last one, after ``AWAITED_S``.
    """
    began_s, reported_s = clock(), -_REPORT_EVERY_S
    while True:
        try:
            return reach()
        except RemoteHostError as error:
            waited_s = clock() - began_s
            if waited_s >= AWAITED_S:
                raise
            if waited_s - reported_s >= _REPORT_EVERY_S:
                progress.step(f"waiting for {name}: {error.message}")
                progress.advance(waited_s, AWAITED_S)
                reported_s = waited_s
        sleep(_EVERY_S)
