"""Whether a replay is the workload: by its least similar quantity, except the number of sessions."""

from __future__ import annotations

import pytest

from pgdyno.model.experiments.likeness import LEAST_MEASURED, SESSIONS, Likeness


def likeness(**by_quantity: float) -> Likeness:
    return Likeness(by_quantity, ())


def test_the_least_similar_quantity_decides() -> None:
    found = likeness(calls=0.99, time=LEAST_MEASURED - 0.01, rows=0.9)
    assert found.least == pytest.approx(LEAST_MEASURED - 0.01)
    assert found.is_another_workload
    assert found.most_different == "time"
    assert not likeness(calls=0.99, rows=LEAST_MEASURED).is_another_workload


def test_another_number_of_sessions_is_no_other_workload() -> None:
    found = Likeness({"calls": 0.99, SESSIONS: 0.1}, ())
    assert not found.is_another_workload
    assert (found.least, found.most_different) == (0.1, SESSIONS)
