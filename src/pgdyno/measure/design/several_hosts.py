"""One load from several hosts: its parts, and turns that are long against the time that words take. Pure."""

from __future__ import annotations

import math
from dataclasses import replace

from pgdyno.base import numbers
from pgdyno.base.errors import UsageError
from pgdyno.model.experiments.experiment import Design

_ROUND_TRIPS = 40  # of a turn: words usually take 2.5 % of it then, half of what keeps one from counting
_STEP_S = 0.05
_LONGEST_S = 2.0  # arbitrary: others disturb a machine for seconds, and turns are paired faster than that


def even_parts(whole: int, count: int) -> tuple[int, ...]:
    """Return parts of a number that differ by one at most, the larger ones first."""
    return tuple((whole + count - 1 - index) // count for index in range(count))


def with_long_turns(design: Design, round_trip_s: float, host: str) -> Design:
    """Return the design, with longer turns if the words to a host take too much of one.

    Raises: UsageError, naming the host, if such turns were too long to be paired.
    """
    turns_s = [one for one in (design.slice_s, design.writing_slice_s) if one is not None]
    least_s = math.ceil(_ROUND_TRIPS * round_trip_s / _STEP_S) * _STEP_S
    if min(turns_s) >= _ROUND_TRIPS * round_trip_s:
        return design
    if least_s > _LONGEST_S:
        raise UsageError(
            f"{host} is too far away to take turns together with other load hosts",
            detail=f"a word to it and back takes {numbers.short_duration(round_trip_s)}: turns would have to "
            f"last {numbers.duration(least_s)}, and {numbers.duration(_LONGEST_S)} is the most",
            hint="keep it alone in the file, or leave it out, or compare whole trials: --design alternating",
        )
    writing_s = None if design.writing_slice_s is None else max(design.writing_slice_s, least_s)
    return replace(design, slice_s=max(design.slice_s, least_s), writing_slice_s=writing_s)
