"""Offsets of clocks: by hand, and for any exchange within its error."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pgdyno.model.cells.check import ClockOffset
from pgdyno.remote.cells.clock import ClockExchange, clock_offset, difference

NOON_NS = 1_764_158_400_000_000_000  # in 2025: large enough to show that no float carries it


def test_the_exchange_with_the_shortest_way_counts() -> None:
    slow = ClockExchange(NOON_NS, NOON_NS + 9_000_000_000, round_trip_ns=10_000_000)
    # there and back takes 2 ms: its middle is at +1 ms, when the other clock shows +3.001 s
    fast = ClockExchange(NOON_NS, NOON_NS + 3_001_000_000, round_trip_ns=2_000_000)
    assert clock_offset([slow, fast]) == ClockOffset(
        offset_s=3.0, error_s=0.001, round_trip_s=0.002, exchanges=2
    )


def test_the_errors_of_two_offsets_add_up() -> None:
    client, server = ClockOffset(0.003, 0.001, 0.002, 30), ClockOffset(-0.002, 0.0005, 0.001, 30)
    assert difference(client, server) == (0.005, 0.0015)


@given(
    offset_ns=st.integers(-(10**12), 10**12),
    ways_ns=st.lists(st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1, max_size=10),
)
def test_the_true_offset_is_within_the_error(offset_ns: int, ways_ns: list[tuple[int, int]]) -> None:
    exchanges = [ClockExchange(NOON_NS, NOON_NS + there + offset_ns, there + back) for there, back in ways_ns]
    found = clock_offset(exchanges)
    assert abs(found.offset_s - offset_ns / 1e9) <= found.error_s + 1e-9
