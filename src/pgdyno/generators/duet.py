"""The time-sliced duet: generators take turns, all but one frozen at any instant.

Noise on shared machines lives at the scale of seconds, so arms are paired faster than that. See
docs/method.md for why this works and what it cannot see.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from pgdyno.generators.process import LoadProcess
from pgdyno.model.experiment import Slice

ReadCpu = Callable[[], tuple[int, ...]]
"""Returns the CPU nanoseconds that each arm's server has used so far."""


def run_slices(
    loads: Sequence[LoadProcess], order: Sequence[int], *, slice_s: float, head_s: float, read_cpu: ReadCpu
) -> Iterator[Slice]:
    """Give each arm its turns, and yield every slice as it ends. All generators are frozen before and after.

    Raises: GeneratorFailedError if a generator ended during its turn.
    """
    for arm in order:
        load = loads[arm]
        start_ns = time.time_ns()
        load.thaw()
        try:
            _sleep_until(start_ns + int(head_s * 1e9))
            before = read_cpu()
            _sleep_until(start_ns + int(slice_s * 1e9))
            end_ns = time.time_ns()
        finally:
            load.freeze()
        after = read_cpu()
        load.require_running()
        yield Slice(arm, start_ns, end_ns, tuple(b - a for a, b in zip(before, after, strict=True)))


def _sleep_until(wall_ns: int) -> None:
    remaining_s = (wall_ns - time.time_ns()) / 1e9
    if remaining_s > 0:
        time.sleep(remaining_s)
