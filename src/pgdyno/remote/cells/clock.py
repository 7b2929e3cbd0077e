"""Compute the offset of another host's clock from exchanges of time stamps. Pure.

Source: F. Cristian, Probabilistic clock synchronization, Distributed Computing 3 (1989).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.model.cells.check import ClockOffset


@dataclass(frozen=True)
class ClockExchange:
    """The local clock when a question was sent, the other host's clock, and the time until the answer.

    ``round_trip_ns`` is measured with the monotonic clock.
    """

    sent_ns: int
    theirs_ns: int
    round_trip_ns: int


def clock_offset(exchanges: Sequence[ClockExchange]) -> ClockOffset:
    """Return the offset from the exchange with the shortest round trip.

    The other host read its clock at an unknown time within the round trip: assuming the middle has an error
    of at most half the round trip. Shapes: at least one exchange.
    """
    best = min(exchanges, key=lambda one: one.round_trip_ns)
    twice_ns = (
        2 * (best.theirs_ns - best.sent_ns) - best.round_trip_ns
    )  # an integer: a float cannot hold ns since 1970 exactly
    return ClockOffset(
        offset_s=twice_ns / 2e9,
        error_s=best.round_trip_ns / 2 / 1e9,
        round_trip_s=best.round_trip_ns / 1e9,
        exchanges=len(exchanges),
    )


def difference(one: ClockOffset, other: ClockOffset) -> tuple[float, float]:
    """Return how far the first host's clock is ahead of the second's, and the error bound, in s."""
    return one.offset_s - other.offset_s, one.error_s + other.error_s
