"""A load host that was lost is asked until it is back, or time is over."""

from __future__ import annotations

import pytest
from tests.fix_progress import Remembered
from tests.unit.measure.arenas.test_on_load_hosts import THERE

from pgdyno.base.errors import RemoteHostError
from pgdyno.remote.cells.await_host import await_host
from pgdyno.remote.cells.reach import ReachedLoadHost


class Host:
    """A host that is away for a time. Whoever sleeps puts the clock on."""

    def __init__(self, away_s: float) -> None:
        self.now_s, self.away_s, self.asked = 1000.0, away_s, 0

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def reach(self) -> ReachedLoadHost:
        self.asked += 1
        if self.now_s < 1000.0 + self.away_s:
            raise RemoteHostError("client1: it does not answer")
        return THERE


def test_it_is_asked_every_few_seconds_and_time_left_is_told_now_and_then() -> None:
    host, progress = Host(away_s=35.0), Remembered()
    assert await_host("client1", host.reach, progress, host.clock, host.sleep) is THERE
    assert host.asked == 8  # after 0, 5, … 35 s
    assert progress.steps == ["waiting for client1: client1: it does not answer"] * 3  # after 0, 15, 30 s
    assert progress.advances == [(0.0, 600.0), (15.0, 600.0), (30.0, 600.0)]


def test_after_ten_minutes_it_is_given_up() -> None:
    host = Host(away_s=601.0)
    with pytest.raises(RemoteHostError, match="client1: it does not answer"):
        await_host("client1", host.reach, Remembered(), host.clock, host.sleep)
    assert host.now_s == 1600.0
