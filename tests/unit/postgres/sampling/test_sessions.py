"""Pauses, ends of transactions and numbers of sessions, as looks at sessions in a row show them."""

from __future__ import annotations

from pgdyno.postgres.sampling.sessions import SeenEnds, SeenPauses, SeenSessions, SeenWaits
from pgdyno.postgres.statement_counts import SightedEnd, SightedWait, Sighting

GAP_S = 0.001


def seen(*looks: tuple[float | None, float | None]) -> list[float]:
    """Pauses of a session by since when it is idle, or since when in a transaction."""
    found = SeenPauses()
    for idle_since_s, began_s in looks:
        found.add(7, idle_since_s, began_s, GAP_S)
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
    found.add(1, 10.0, None, GAP_S)
    found.add(2, None, 11.0, GAP_S)
    found.begin_row()
    found.add(1, None, 99.0, GAP_S)
    assert found.seconds == []


def test_a_transaction_ends_in_what_its_session_runs_in_it_or_after_it() -> None:
    found = SeenEnds()
    for transaction, statement, is_rolled_back in (
        ("at 1", 11, None), ("at 1", 12, None), (None, 19, True),  # idle after ROLLBACK
        ("at 2", 13, None), ("at 2", 18, False), (None, 18, False),  # in COMMIT, then idle after it
        ("at 3", 14, None), ("at 4", 15, None), (None, 15, None),  # a statement of its own ends no block
    ):  # fmt: skip
        found.add(7, transaction, statement, is_rolled_back=is_rolled_back)
    assert found.ended == [
        SightedEnd(frozenset({11, 12}), is_rolled_back=True),
        SightedEnd(frozenset({13}), is_rolled_back=False),
    ]


def test_the_end_of_a_transaction_is_unknown_across_bursts_and_sessions() -> None:
    found = SeenEnds()
    found.add(1, "at 1", 11, is_rolled_back=None)
    found.add(2, None, None, is_rolled_back=True)
    found.begin_row()
    found.add(1, None, None, is_rolled_back=True)
    found.add(3, "at 2", None, is_rolled_back=None)  # before PostgreSQL 14, statements have no id
    found.add(3, None, None, is_rolled_back=True)
    assert found.ended == []


def test_sessions_count_that_worked_by_those_connected_at_a_time() -> None:
    found = SeenSessions()
    for look in range(10):
        found.add(1, look, None, is_in_transaction=True)
        found.add(2, look, float(look), is_in_transaction=False)  # ran something since the last look
        found.add(3, look, 5.0, is_in_transaction=False)  # idle all the time
        if look < 5:
            found.add(4, look, None, is_in_transaction=True)
        else:
            found.add(5, look, None, is_in_transaction=True)  # in place of the fourth
    assert (found.mean(10), SeenSessions().mean(0)) == (3.0, 0.0)


def test_each_wait_counts_once_and_is_new_if_it_began_between_two_looks() -> None:
    found = SeenWaits()
    block = Sighting(7, "at 3", 5, is_between=True)
    at_work = Sighting(7, "at 3", 5)
    looks = (
        (None, 4, 1.0),  # idle since before the first look
        (None, 4, 2.0),
        (None, 4, 2.0),
        (at_work, 5, None),
        (block, 5, None),
        (block, 5, None),
        (at_work, 5, None),
        (block, 5, None),
        (None, None, 9.0),  # after a statement without a number
    )
    for look, (sighting, after, idle_since_s) in enumerate(looks, 1):
        found.add(7, look, sighting, after, idle_since_s)
    found.begin_row()
    found.add(7, 11, None, 4, 11.0)
    found.add(8, 11, None, 6, 3.0)  # a session that has connected since the first look
    assert found.waits == [
        SightedWait(4, is_alone=True, is_new=True),
        SightedWait(5, is_alone=False, is_new=True),
        SightedWait(5, is_alone=False, is_new=True),
        SightedWait(4, is_alone=True, is_new=False),
        SightedWait(6, is_alone=True, is_new=False),
    ]
