"""Pauses between transactions, as looks at sessions in a row show them."""

from __future__ import annotations

from pgdyno.postgres.sampling.sessions import SeenPauses

GAP_S = 0.001


def seen(*looks: tuple[float | None, float | None]) -> list[float]:
    """Pauses of a session by since when it is idle, or since when in a transaction."""
    found = SeenPauses()
    for idle_since_s, began_s in looks:
        found.take(7, idle_since_s, began_s, GAP_S)
    return found.seconds


def test_a_pause_ends_when_the_next_transaction_begins() -> None:
    assert seen((10.0, None), (10.0, None), (None, 12.5), (None, 12.5)) == [2.5]


def test_a_pause_has_ended_too_if_the_transaction_was_over_before_the_next_look() -> None:
    assert seen((10.0, None), (12.0, None), (None, 13.0)) == [2.0, 1.0]


def test_a_pause_as_short_as_the_time_between_looks_may_be_several_and_counts_as_none() -> None:
    assert seen((10.0, None), (None, 10.0008)) == [0.0]


def test_a_session_that_was_not_idle_before_has_not_been_seen_to_pause() -> None:
    assert seen((None, 12.0), (None, 13.0)) == []
    assert seen((None, 12.0), (14.0, None), (None, None), (None, 15.5)) == [1.5]


def test_sessions_are_told_apart_and_rows_of_looks_as_well() -> None:
    found = SeenPauses()
    found.take(1, 10.0, None, GAP_S)
    found.take(2, None, 11.0, GAP_S)
    found.begin_row()
    found.take(1, None, 99.0, GAP_S)
    assert found.seconds == []
