"""When transactions of a replay start, by the options that ask for it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.measure.replay import ReplayPace, replay_pace
from pgdyno.model.experiments.captured import CapturedCall, CapturedTransaction, CapturedWorkload

WORKLOAD = CapturedWorkload(
    "shop",
    "18",
    1,
    "d",
    60.0,
    2,
    (),
    (CapturedTransaction(600.0, (CapturedCall("s", 1.0),)),),
    pauses_s=(0.5, 1.5),
    sessions=9,
)


def pace(
    *,
    rate_tps: float | None = None,
    k: float | None = None,
    clients: int | None = None,
    is_pausing: bool = False,
    workload: CapturedWorkload = WORKLOAD,
) -> ReplayPace:
    return replay_pace(workload, clients, rate_tps, k, is_pausing=is_pausing)


def refused(**options: object) -> UsageError:
    with pytest.raises(UsageError) as caught:
        pace(**options)  # type: ignore[arg-type]
    return caught.value


def test_without_options_the_loop_is_closed_and_without_pauses() -> None:
    assert pace() == ReplayPace()


def test_transactions_arrive_at_a_rate_or_as_often_as_in_the_original() -> None:
    assert pace(rate_tps=7.0, clients=3) == ReplayPace(3, 7.0)
    assert pace(k=2.0) == ReplayPace(rate_tps=20.0)


def test_as_many_sessions_pause_as_did_and_a_faster_pace_shortens_their_pauses() -> None:
    assert pace(is_pausing=True) == ReplayPace(9, pauses_s=(0.5, 1.5))
    assert pace(is_pausing=True, k=2.0, clients=4) == ReplayPace(4, pauses_s=(0.25, 0.75))


def test_a_file_with_the_median_alone_has_as_many_sessions_as_its_rate_takes() -> None:
    old = replace(WORKLOAD, pauses_s=(0.75,), sessions=None)
    # Ten transactions a second, each with a pause of 0.75 s, and two sessions at work: 9.5.
    assert pace(is_pausing=True, workload=old).clients == 10


def test_wishes_that_exclude_each_other_are_refused() -> None:
    assert refused(rate_tps=5.0, is_pausing=True).message == "--pauses and --rate are mutually exclusive"
    assert refused(rate_tps=5.0, k=1.0).message == "--pace and --rate both set the arrival rate"


def test_what_the_workload_does_not_know_is_said() -> None:
    unknown = replace(WORKLOAD, pauses_s=(), seconds=0.0)
    error = refused(is_pausing=True, workload=unknown)
    assert error.message == 'the workload "shop" has no recorded session pauses'
    assert "pauses_s = [0.1, 0.5]" in (error.hint or "")
    assert "has no recorded transaction rate" in refused(k=1.0, workload=unknown).message
