"""What is expected of the rest of some work."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from tests.fix_progress import Remembered

from pgdyno.base.time_left import TimeLeft


@dataclass
class Clock:
    """A clock that a test sets."""

    now_s: float = 1000.0

    def __call__(self) -> float:
        return self.now_s


def told(found: float, *reports: tuple[float, float]) -> list[tuple[float, float]]:
    """Return what is told of reports, each so many seconds after the beginning, of so large a share."""
    progress, clock = Remembered(), Clock()
    left = TimeLeft(progress, found, clock)
    for after_s, share in reports:
        clock.now_s = 1000.0 + after_s
        left.report(share)
    return progress.advances


def test_the_rest_goes_as_fast_as_what_was_done() -> None:
    assert told(0.0, (60.0, 0.25)) == [(60.0, 240.0)]


def test_what_was_done_before_says_nothing_about_how_fast_it_goes() -> None:
    ((done_s, total_s),) = told(0.5, (60.0, 0.6))  # a tenth in 60 s, four more to come
    assert (done_s, total_s) == pytest.approx((60.0, 300.0))


def test_nothing_is_told_too_early_or_too_often() -> None:
    assert told(0.5, (1.0, 0.5), (2.0, 0.54)) == []
    assert [done_s for done_s, _ in told(0.0, (5.0, 0.1), (19.0, 0.2), (20.0, 0.3), (21.0, 0.9))] == [5, 20]
