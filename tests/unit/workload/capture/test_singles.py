"""Statements that ran outside of blocks, from what sessions did after them, and from counts."""

from __future__ import annotations

from pgdyno.postgres.statement_counts import SightedWait
from pgdyno.workload.capture.singles import CountedTransactions, as_counted, find_singles

READ, WRITE, ALONE, RARE, RARER = 1, 2, 3, 4, 5
CALLS = {READ: 400, WRITE: 100, ALONE: 50, RARE: 100, RARER: 30}
SEEN = {READ: 9, WRITE: 9, ALONE: 9, RARE: 2, RARER: 1}


def waits(statement: int, alone: int, within: int, *, is_new: bool = True) -> list[SightedWait]:
    return [
        SightedWait(statement, is_alone=number < alone, is_new=is_new) for number in range(alone + within)
    ]


def test_statements_seen_in_blocks_and_outside_are_divided_like_the_waits_after_them() -> None:
    found = find_singles(CALLS, [ALONE], [READ, WRITE], [*waits(READ, 3, 9), *waits(WRITE, 0, 5)], SEEN)
    assert found.outside == {ALONE: 50.0, READ: 100.0}
    assert found.in_both == [READ]
    assert found.calls_in_blocks([READ, WRITE]) == {READ: 300.0, WRITE: 100.0}


def test_new_waits_are_taken_if_they_are_enough_since_long_ones_are_seen_more_often() -> None:
    old = waits(READ, 100, 0, is_new=False)
    few = find_singles(CALLS, [], [READ], [*old, *waits(READ, 1, 3)], SEEN)
    enough = find_singles(CALLS, [], [READ], [*old, *waits(READ, 2, 6)], SEEN)
    assert few.outside[READ] == 388.0  # 101 of 104
    assert enough.outside[READ] == 100.0


def test_a_statement_of_blocks_has_calls_in_them_however_seldom_it_was_seen_to_wait_there() -> None:
    assert find_singles(CALLS, [], [READ], waits(READ, 9, 0), SEEN).outside[READ] == 360.0


def test_waits_after_failed_statements_do_not_leave_blocks_without_calls() -> None:
    calls = {READ: 3}
    # Nine waits alone, of which six or more were after failed calls: three of four calls, and one in a block.
    assert find_singles(calls, [], [READ], waits(READ, 9, 0), SEEN).outside[READ] == 2.0
    assert find_singles(calls, [], [READ], waits(READ, 9, 3), SEEN).outside[READ] == 2.0
    assert find_singles({READ: 1}, [], [READ], waits(READ, 9, 0), SEEN).outside[READ] == 0.0


def test_rarely_seen_statements_are_unsure_unless_a_session_was_idle_after_one() -> None:
    found = find_singles(CALLS, [ALONE, RARE, RARER], [], waits(RARE, 1, 0, is_new=False), SEEN)
    assert found.unsure == [RARER]


def test_the_number_of_transactions_without_begin_decides() -> None:
    both = find_singles(CALLS, [ALONE], [READ], waits(READ, 5, 5), SEEN)
    assert both.outside[READ] == 200.0
    # 1,000 transactions, 600 of them blocks: 400 single statements, 50 of which are ALONE.
    found = as_counted(both, 600, CountedTransactions(1000, seconds=600), SEEN)
    assert found.outside == {ALONE: 50.0, READ: 350.0}
    # Within a second of 20, the database's count may be late by 50: it does not decide.
    assert as_counted(both, 705, CountedTransactions(1000, seconds=20), SEEN).outside[READ] == 200.0


def test_statements_that_are_not_replayed_may_have_been_in_blocks() -> None:
    both = find_singles(CALLS, [ALONE], [READ], waits(READ, 5, 5), SEEN)
    counted = CountedTransactions(850, others=150, seconds=600)
    assert as_counted(both, 650, counted, SEEN).outside[READ] == 200.0  # from 150 to 300


def test_unsure_statements_stay_outside_as_often_as_the_database_counted() -> None:
    unsure = find_singles(CALLS, [RARER, RARE], [], [], SEEN)
    for counted, left in ((1130, []), (1100, [RARER]), (1000, [RARER, RARE])):
        found = as_counted(unsure, 1000, CountedTransactions(counted, seconds=600), SEEN)
        assert list(found.unsure) == left, counted


def test_too_few_calls_are_not_decided_by_a_count_that_comes_late() -> None:
    unsure = find_singles(CALLS, [RARER, RARE], [], [], SEEN)
    found = as_counted(unsure, 10_000, CountedTransactions(10_130, seconds=600), SEEN)
    assert list(found.unsure) == [RARER, RARE]
