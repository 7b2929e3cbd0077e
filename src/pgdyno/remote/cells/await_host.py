"""A load host that was lost: it is asked again and again until it can issue load."""

from __future__ import annotations

import time
from collections.abc import Callable

from pgdyno.base.errors import RemoteHostError
from pgdyno.base.ports import Progress
from pgdyno.remote.cells.reach import ReachedLoadHost

AWAITED_S = 600.0  # arbitrary: a server's firmware and system take minutes to start
_EVERY_S = 5.0  # arbitrary: ssh itself waits for an answer for 10 s
_TELL_EVERY_S = 15.0  # seldom enough for a log


def await_host(
    name: str,
    reach: Callable[[], ReachedLoadHost],
    progress: Progress,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> ReachedLoadHost:
    """Return the host once it is reached; say why it is not, and how long it is still waited for.

    Raises: RemoteHostError, the last one, when time is over.
    """
    began_s, told_s = clock(), -_TELL_EVERY_S
    while True:
        try:
            return reach()
        except RemoteHostError as error:
            waited_s = clock() - began_s
            if waited_s >= AWAITED_S:
                raise
            if waited_s - told_s >= _TELL_EVERY_S:
                progress.step(f"waiting for {name}: {error.message}")
                progress.advance(waited_s, AWAITED_S)
                told_s = waited_s
        sleep(_EVERY_S)
