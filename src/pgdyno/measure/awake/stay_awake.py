"""``pgdyno awake``: keep idle CPUs awake by processes of the lowest priority.

They run until it is ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgdyno.base.errors import RefusedError
from pgdyno.host.awake import Awake, AwakeMeans
from pgdyno.host.probing.spinners import Spinners
from pgdyno.measure.awake.awake import Probe, is_shorter, probe_us


@contextmanager
def staying_awake(spinners: Spinners, probe: Probe = probe_us) -> Iterator[Awake]:
    """Keep these CPUs awake within a context.

    Yields the latency of a wake-up, before and now.

    Raises: RefusedError where it would cost somebody else, or does not shorten a wake-up; PrivilegeError.
    """
    if (reason := spinners.why_not()) is not None:
        raise RefusedError("CPUs are not kept awake here", detail=reason)
    booted_us = probe()
    with spinners.spin():
        held_us = probe()
        if not is_shorter(booted_us, held_us):
            raise RefusedError(
                "keeping CPUs busy does not shorten a wake-up here",
                detail=f"it takes {_us(held_us)}, and {_us(booted_us)} without",
                hint="in a guest of KVM the lever halt_polling may: pgdyno advise --layers system",
            )
        yield Awake(AwakeMeans.SPINNERS, "", booted_us, held_us)


def _us(time_us: float | None) -> str:
    return "an unknown time" if time_us is None else f"{time_us:.1f} µs"
