"""Pauses of sessions, as few numbers with the mean of all."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pgdyno.model.experiments.captured import CapturedCall, CapturedTransaction, CapturedWorkload
from pgdyno.workload.capture.pauses import with_pauses

TEN_PER_S = CapturedWorkload(
    "w", "18", 1, "d", 60.0, 1, (), (CapturedTransaction(600.0, (CapturedCall("s", 1.0),)),)
)


def test_few_pauses_are_kept_from_the_shortest_to_the_longest() -> None:
    assert with_pauses(TEN_PER_S, [0.5, 0.1, 3.0]).pauses_s == (0.1, 0.5, 3.0)


def test_many_pauses_are_the_means_of_their_twentieths() -> None:
    each = [float(number) for number in range(40)]  # two in a twentieth
    assert with_pauses(TEN_PER_S, each[::-1]).pauses_s == tuple(2 * part + 0.5 for part in range(20))


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=90))
@example([1.9214778455229862, 2047.5, 2047.5])
def test_the_mean_is_that_of_all_pauses(pauses_s: list[float]) -> None:
    found = with_pauses(TEN_PER_S, pauses_s).pauses_s
    assert fmean(found) == pytest.approx(fmean(pauses_s), rel=1e-3, abs=1e-9)
    assert list(found) == sorted(found)


def test_the_mean_pause_is_that_of_the_time_in_which_sessions_were_idle() -> None:
    # Ten transactions a second and five idle sessions: each transaction is followed by 0.5 s, not 2 s.
    assert with_pauses(TEN_PER_S, [1.0, 3.0], idle=5.0).pauses_s == (0.25, 0.75)
    assert with_pauses(TEN_PER_S, [0.0, 0.0], idle=0.01).pauses_s == (0.001, 0.001)  # too short to be seen
    assert with_pauses(replace(TEN_PER_S, seconds=0.0), [1.0], idle=5.0).pauses_s == (1.0,)


def test_sessions_of_a_file_that_does_not_count_them_follow_from_rate_and_pauses() -> None:
    # Ten transactions a second, each followed by a pause of 2.05 s: 20.5 sessions pause, one is at work.
    pausing = with_pauses(TEN_PER_S, [0.1, 4.0])
    assert pausing.pausing_clients == 22
    assert replace(pausing, sessions=7).pausing_clients == 7
