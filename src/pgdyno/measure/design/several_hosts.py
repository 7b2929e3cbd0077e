"""One load from several hosts: its parts, and turns much longer than the message latency. Pure."""

from __future__ import annotations

import math
from dataclasses import replace

from pgdyno.base import numbers
from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.experiment import Design

_ROUND_TRIPS = 40  # per turn: messages then take 2.5 % of it, half the share that makes it void
_STEP_S = 0.05
_LONGEST_S = 2.0  # arbitrary: disturbances last seconds; turns must be paired faster than that


def even_parts(whole: int, count: int) -> tuple[int, ...]:
    """Return ``count`` parts of a number that differ by at most one, larger ones first."""
    return tuple((whole + count - 1 - index) // count for index in range(count))


def with_long_turns(design: Design, round_trip_s: float, host: str) -> Design:
    """Return the design, with longer turns if messages to a host take too much of a turn.

    Raises: UsageError, naming the host, if such turns were too long to be paired.
    """
    turns_s = [one for one in (design.slice_s, design.writing_slice_s) if one is not None]
    least_s = math.ceil(_ROUND_TRIPS * round_trip_s / _STEP_S) * _STEP_S
    if min(turns_s) >= _ROUND_TRIPS * round_trip_s:
        return design
    if least_s > _LONGEST_S:
        raise UsageError(
            f"{host} is too far away to take turns together with other load hosts",
            detail=f"the round trip takes {numbers.short_duration(round_trip_s)}: turns would have to last "
            f"{numbers.duration(least_s)}, but the limit is {numbers.duration(_LONGEST_S)}",
            hint="use it as the only load host, leave it out, or compare whole trials: --design alternating",
        )
    writing_s = None if design.writing_slice_s is None else max(design.writing_slice_s, least_s)
    return replace(design, slice_s=max(design.slice_s, least_s), writing_slice_s=writing_s)
