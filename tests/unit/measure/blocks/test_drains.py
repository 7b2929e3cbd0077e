"""How much of the turns their ends take, by hand."""

from __future__ import annotations

import pytest

from pgdyno.measure.blocks.drains import audit_drains, drain_share
from pgdyno.model.experiments.slices import Slice

MS = 1_000_000


def turn(arm: int, start_ms: int, drained_ms: int | None) -> Slice:
    """Return a turn of 50 ms."""
    drained_ns = None if drained_ms is None else drained_ms * MS
    return Slice(arm, start_ms * MS, (start_ms + 50) * MS, (0, 0), drained_ns)


A_SHORT_AND_A_LONG_END = [turn(0, 0, 50), turn(1, 50, 110), turn(1, 110, 160), turn(0, 160, 260)]


def test_the_share_is_of_the_turns_and_their_ends() -> None:
    # Arm 0: ends of 0 and 50 ms in 50 + 100 ms. Arm 1: 10 and 0 ms in 60 + 50 ms.
    assert drain_share(A_SHORT_AND_A_LONG_END, 0) == pytest.approx(50 / 150)
    assert drain_share(A_SHORT_AND_A_LONG_END, 1) == pytest.approx(10 / 110)


def test_a_block_has_the_largest_share_and_how_far_the_arms_are_apart() -> None:
    found = audit_drains(A_SHORT_AND_A_LONG_END)
    assert found == pytest.approx({"drain_share": 50 / 150, "drain_share_difference": 50 / 150 - 10 / 110})


def test_one_arm_alone_differs_from_none() -> None:
    assert audit_drains([turn(0, 0, 60)]) == pytest.approx({"drain_share": 10 / 60})


def test_where_ends_were_not_recorded_nothing_is_known() -> None:
    assert drain_share([turn(0, 0, None)], 0) is None
    assert audit_drains([turn(0, 0, None), turn(1, 50, None)]) == {}
