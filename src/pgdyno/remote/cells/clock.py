"""Offset of another host's clock, by exchanges of time stamps. Pure.

Source: F. Cristian, Probabilistic clock synchronization, Distributed Computing 3 (1989).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.model.cells.check import ClockOffset


@dataclass(frozen=True)
class ClockExchange:
    """Our clock when a question left and when its answer came, and the other host's clock in between.

    ``round_trip_ns`` is by a clock that nobody sets.
    """

    sent_ns: int
    theirs_ns: int
    round_trip_ns: int


def clock_offset(exchanges: Sequence[ClockExchange]) -> ClockOffset:
    """Return the offset by the exchange with the shortest round trip.

    The other host read its clock at some time between our two readings: the middle is wrong by at most half
    the round trip. Shapes: at least one exchange.
    """
    best = min(exchanges, key=lambda one: one.round_trip_ns)
    twice_ns = (
        2 * (best.theirs_ns - best.sent_ns) - best.round_trip_ns
    )  # whole: a float has no room for years
    return ClockOffset(
        offset_s=twice_ns / 2e9,
        error_s=best.round_trip_ns / 2 / 1e9,
        round_trip_s=best.round_trip_ns / 1e9,
        exchanges=len(exchanges),
    )


def difference(one: ClockOffset, other: ClockOffset) -> tuple[float, float]:
    """Return how far the first host's clock is ahead of the second's, and the error of that, in s."""
    return one.offset_s - other.offset_s, one.error_s + other.error_s
