"""Transactions, put together from counts of statements and from what sessions were seen to do."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from pgdyno.postgres.statement_counts import SightedWait, Sighting
from pgdyno.workload.capture.singles import CountedTransactions
from pgdyno.workload.capture.statements import TransactionPart
from pgdyno.workload.capture.transactions import Grouping, SeenTransaction, group, known

BEGIN, END, READ, WRITE, ALONE = 1, 2, 3, 4, 5
KINDS = {
    BEGIN: TransactionPart.BEGIN,
    END: TransactionPart.COMMIT,
    READ: TransactionPart.QUERY,
    WRITE: TransactionPart.QUERY,
    ALONE: TransactionPart.QUERY,
}


def seen(*transactions: Sequence[int]) -> list[Sighting]:
    """Sightings of one session that ran these transactions, each statement seen twice."""
    return [
        Sighting(7, f"at {number}", statement)
        for number, statements in enumerate(transactions)
        for statement in statements
        for _ in range(2)
    ]


def test_statements_seen_in_one_transaction_belong_together_in_their_order() -> None:
    calls = {BEGIN: 100, END: 100, WRITE: 100, READ: 300, ALONE: 50}
    found = group(calls, KINDS, seen([BEGIN, READ, WRITE, END], [ALONE], [READ, WRITE]))
    block = SeenTransaction(100, ((READ, 3.0), (WRITE, 1.0)), is_block=True)
    assert found == Grouping(
        (block, SeenTransaction(50, ((ALONE, 1.0),), is_block=False)), untold=0, guessed=()
    )


def test_a_statement_never_seen_with_another_is_a_transaction_of_its_own() -> None:
    found = group({READ: 10, ALONE: 20}, KINDS, seen([READ], [ALONE], [READ]))
    alone = (
        SeenTransaction(10, ((READ, 1.0),), is_block=False),
        SeenTransaction(20, ((ALONE, 1.0),), is_block=False),
    )
    assert found == Grouping(alone, untold=0, guessed=())


def test_blocks_whose_statements_were_not_seen_are_counted() -> None:
    assert group({BEGIN: 30, END: 30, READ: 30}, KINDS, []).untold == 30


def test_two_sessions_are_not_mixed_up() -> None:
    sightings = [Sighting(1, "at 0", READ), Sighting(2, "at 0", WRITE), Sighting(1, "at 0", READ)]
    groups = group({READ: 1, WRITE: 1}, KINDS, sightings).groups
    assert len(groups) == 2


def test_the_count_that_most_statements_share_is_that_of_the_transactions() -> None:
    kinds = dict.fromkeys(range(10, 16), TransactionPart.QUERY)
    calls = {10: 1000, 11: 1002, 12: 998, 13: 125, 14: 131, 15: 4000}
    [only] = group(calls, kinds, seen(list(kinds))).groups
    assert only.count == pytest.approx(1000)
    assert dict(only.calls)[15] == pytest.approx(4.0)
    assert dict(only.calls)[13] == pytest.approx(0.125)


def test_the_order_is_that_of_most_pairs_however_statements_come() -> None:
    chance = random.Random(1)  # noqa: S311 — no secret
    kinds = dict.fromkeys(range(1, 8), TransactionPart.QUERY)
    runs = [[one for one in kinds if chance.random() < 0.6] for _ in range(300)]
    noise = [[6, 2], [7, 1]]
    shuffled = chance.sample(sorted(kinds), len(kinds))
    [only] = group(dict.fromkeys(shuffled, 300), kinds, seen(*runs, *noise)).groups
    assert [one for one, _ in only.calls] == [1, 2, 3, 4, 5, 6, 7]


def test_a_savepoint_comes_before_what_needs_it() -> None:
    savepoint, release = 10, 11
    kinds = {
        READ: TransactionPart.QUERY,
        savepoint: TransactionPart.SAVEPOINT,
        release: TransactionPart.BACK,
        WRITE: TransactionPart.QUERY,
    }
    sightings = seen([READ, release], [release, WRITE], [savepoint, WRITE], [READ, savepoint])
    [only] = group(dict.fromkeys(kinds, 10), kinds, sightings).groups
    assert [one for one, _ in only.calls] == [READ, savepoint, release, WRITE]


def test_a_savepoint_that_was_seen_alone_belongs_into_the_block_that_was_as_frequent() -> None:
    kinds = {**KINDS, 10: TransactionPart.SAVEPOINT, 11: TransactionPart.BACK}
    calls = {BEGIN: 110, READ: 100, WRITE: 100, ALONE: 10, 6: 10, 10: 101, 11: 101}
    kinds[6] = TransactionPart.QUERY
    groups = group(calls, kinds, seen(*[[READ, WRITE]] * 15, *[[ALONE, 6]] * 15, [10, 11])).groups
    assert [[one for one, _ in found.calls] for found in groups] == [[READ, WRITE, 10, 11], [ALONE, 6]]


def test_a_savepoint_without_any_block_is_no_transaction() -> None:
    kinds = {READ: TransactionPart.QUERY, 10: TransactionPart.SAVEPOINT, 11: TransactionPart.BACK}
    groups = group(dict.fromkeys(kinds, 10), kinds, seen([READ], [10], [10, 11])).groups
    assert [one.calls for one in groups] == [((READ, 1.0),)]


def test_what_goes_back_to_no_savepoint_is_left_out() -> None:
    kinds = {READ: TransactionPart.QUERY, WRITE: TransactionPart.QUERY, 11: TransactionPart.BACK}
    [only] = group(dict.fromkeys(kinds, 10), kinds, seen([READ, WRITE, 11])).groups
    assert [one for one, _ in only.calls] == [READ, WRITE]


def test_times_that_are_nearly_whole_are_whole() -> None:
    calls = {BEGIN: 1000, END: 999, READ: 2990, WRITE: 1003, ALONE: 1500}
    [only] = group(calls, KINDS, seen([READ, WRITE, ALONE])).groups
    assert only.calls == ((READ, 3.0), (WRITE, 1.0), (ALONE, 1.5))


def test_parts_of_a_block_that_were_never_seen_together_are_one_by_their_counts() -> None:
    kinds = {**KINDS, 6: TransactionPart.QUERY, 7: TransactionPart.QUERY}
    calls = {BEGIN: 1000, END: 1000, READ: 1001, WRITE: 999, 6: 1000, 7: 2000}
    found = group(calls, kinds, seen([READ, WRITE], [6, 7]))
    [only] = found.groups
    assert dict(only.calls) == {READ: 1.0, WRITE: 1.0, 6: 1.0, 7: 2.0}
    assert found.untold == 0


def test_a_statement_too_short_to_be_seen_belongs_to_the_block_that_was_as_frequent() -> None:
    calls = {BEGIN: 1000, END: 1000, READ: 1000, WRITE: 1000, ALONE: 1003}
    found = group(calls, KINDS, seen([READ, WRITE], [ALONE]))
    assert [[one for one, _ in its.calls] for its in found.groups] == [[READ, WRITE, ALONE]]
    assert found.guessed == (ALONE,)


def test_a_statement_after_which_a_session_was_idle_is_no_part_of_a_block_that_was_as_frequent() -> None:
    calls = {BEGIN: 1000, END: 1000, READ: 1000, WRITE: 1000, ALONE: 1003}
    idle = [SightedWait(ALONE, is_alone=True, is_new=False)]
    found = group(calls, KINDS, seen([READ, WRITE], [ALONE]), waits=idle)
    assert [[one for one, _ in its.calls] for its in found.groups] == [[READ, WRITE], [ALONE]]
    assert (found.guessed, found.assumed_share) == ((), 0.0)


def test_the_database_decides_whether_a_statement_that_was_hardly_seen_ran_in_a_block() -> None:
    calls = {BEGIN: 1000, END: 1000, READ: 1000, WRITE: 1000, ALONE: 1003}
    sightings = seen([READ, WRITE], [ALONE])
    outside = group(calls, KINDS, sightings, CountedTransactions(1990))
    within = group(calls, KINDS, sightings, CountedTransactions(1010))
    assert [[one for one, _ in its.calls] for its in outside.groups] == [[READ, WRITE], [ALONE]]
    assert [[one for one, _ in its.calls] for its in within.groups] == [[READ, WRITE, ALONE]]
    assert (outside.guessed, within.guessed) == ((), (ALONE,))
    assert (outside.assumed_share, within.assumed_share) == (0.0, 1.0)


def test_a_statement_that_ran_in_blocks_and_outside_is_divided_as_the_database_counted() -> None:
    # 1,000 blocks of READ and WRITE; READ ran 3,000 times alone. Two of the three waits were in blocks.
    calls = {BEGIN: 1000, END: 1000, READ: 4000, WRITE: 1000}
    waits = [SightedWait(READ, is_alone=is_alone, is_new=True) for is_alone in (True, False, False)]
    found = group(calls, KINDS, seen([READ, WRITE]), CountedTransactions(4000), waits)
    block, alone = found.groups
    assert (block.count, block.calls) == (1000, ((READ, 1.0), (WRITE, 1.0)))
    assert (alone.count, alone.calls) == (3000, ((READ, 1.0),))
    assert found.in_both == (READ,)


def test_a_statement_often_seen_alone_stays_alone_however_frequent() -> None:
    calls = {BEGIN: 1000, END: 1000, READ: 1000, WRITE: 1000, ALONE: 1003}
    found = group(calls, KINDS, seen([READ, WRITE], [ALONE], [ALONE], [ALONE]))
    assert [[one for one, _ in its.calls] for its in found.groups] == [[READ, WRITE], [ALONE]]
    assert found.guessed == ()


def test_blocks_are_as_many_as_their_statements_where_begin_was_not_counted() -> None:
    # 3,066 prepared blocks of two statements, and 9,198 single ones: nothing of them is empty.
    calls = {BEGIN: 2, END: 2, READ: 3066, WRITE: 3070, ALONE: 9198}
    found = group(calls, KINDS, seen([READ, WRITE], *[[ALONE]] * 5))
    assert found.groups == (
        SeenTransaction(3068, ((READ, 1.0), (WRITE, 1.0)), is_block=True),
        SeenTransaction(9198, ((ALONE, 1.0),), is_block=False),
    )
    assert found.untold == 0


def test_prepared_blocks_that_take_turns_on_tables_are_as_many_as_the_database_counted() -> None:
    # As sysbench does it: 1,000 blocks read and write one of four tables each.
    tables = range(10, 18)
    kinds = {**KINDS, **dict.fromkeys(tables, TransactionPart.QUERY)}
    calls = {BEGIN: 2, END: 2, **dict.fromkeys(tables, 250)}
    [only] = group(calls, kinds, seen(list(tables)), CountedTransactions(990)).groups
    assert only.count == 990
    assert dict(only.calls) == dict.fromkeys(tables, pytest.approx(0.2525, abs=0.001))


def test_blocks_are_not_filled_with_statements_that_were_called_too_rarely() -> None:
    found = group({BEGIN: 100, END: 100, READ: 30, WRITE: 30}, KINDS, seen([READ, WRITE]))
    assert (found.groups[0].count, found.groups[0].calls, found.untold) == (
        30,
        ((READ, 1.0), (WRITE, 1.0)),
        70,
    )


def test_a_statement_after_which_a_transaction_was_idle_is_part_of_a_block() -> None:
    sightings = [Sighting(1, "at 0", ALONE, is_between=True)]
    [only] = group({BEGIN: 10, ALONE: 10}, KINDS, sightings).groups
    assert only.is_block


def test_a_kind_of_block_that_was_hardly_seen_stays_one_unless_the_server_counted_fewer_blocks() -> None:
    calls = {READ: 10, WRITE: 10, ALONE: 7, 6: 7}
    kinds = {**KINDS, 6: TransactionPart.QUERY}
    sightings = seen(*[[READ, WRITE]] * 20, [ALONE, 6])
    uncounted = group(calls, kinds, sightings)
    counted = group({**calls, BEGIN: 10, END: 10}, kinds, sightings)
    assert [[len(one.calls) for one in found.groups] for found in (uncounted, counted)] == [[2, 2], [4]]
    assert (uncounted.is_mixed, counted.is_mixed) == (False, True)
    assert (uncounted.assumed_share, counted.assumed_share) == (0.0, 1.0)


def test_kinds_put_together_within_those_that_share_a_statement_are_doubtful() -> None:
    calls = {BEGIN: 300, END: 300, 11: 300, 12: 100, 13: 100, 14: 200, 15: 200, 16: 50, 17: 50}
    kinds = {**KINDS, **dict.fromkeys(range(11, 18), TransactionPart.QUERY)}
    found = group(calls, kinds, seen([11, 12, 13], [11, 14, 15], [11, 16, 17]))
    assert {frozenset(dict(one.calls)): one.count for one in found.groups} == {
        frozenset({11, 16, 17}): 50, frozenset({11, 12, 13, 14, 15}): 200, frozenset({11}): 50,
    }  # fmt: skip
    # Only the first kind was seen as it is replayed; that of 11 alone fills the number of blocks.
    assert found.is_mixed
    assert found.assumed_share == pytest.approx(250 / 300)


def test_blocks_that_are_as_many_as_the_server_counted_stay_apart_however_rarely_they_were_seen() -> None:
    calls = {READ: 100, WRITE: 100, ALONE: 50, 6: 50}
    kinds = {**KINDS, 6: TransactionPart.QUERY}
    sightings = seen(*[[READ, WRITE]] * 20, [ALONE, 6])
    begun = group({**calls, BEGIN: 150, END: 150}, kinds, sightings).groups
    prepared = group({**calls, BEGIN: 1, END: 1}, kinds, sightings, CountedTransactions(146)).groups
    for groups in (begun, prepared):
        assert [one.count for one in groups] == [100, 50]
    [parts] = group({**calls, BEGIN: 100, END: 100}, kinds, sightings).groups
    assert dict(parts.calls) == {READ: 1.0, WRITE: 1.0, ALONE: 0.5, 6: 0.5}


def test_there_are_always_savepoints_for_what_needs_them() -> None:
    kinds = {
        READ: TransactionPart.QUERY,
        WRITE: TransactionPart.QUERY,
        10: TransactionPart.SAVEPOINT,
        11: TransactionPart.BACK,
    }
    calls = {READ: 1000, WRITE: 1000, 10: 700, 11: 650}
    [only] = group(calls, kinds, seen([READ, 10, WRITE, 11])).groups
    assert dict(only.calls) == {READ: 1.0, 10: 1.0, WRITE: 1.0, 11: 0.65}
    # The statistics were full, and lost some of them: most statements ran less often than blocks.
    calls = {BEGIN: 1000, READ: 900, WRITE: 1000, 10: 900, 11: 900}
    [only] = group(calls, {**KINDS, **kinds}, seen([READ, 10, WRITE, 11])).groups
    assert dict(only.calls) == {READ: 0.9, 10: 1.0, WRITE: 1.0, 11: 0.9}


def test_calls_in_a_loop_are_joined_if_those_between_them_are_not_replayed() -> None:
    omitted = 99
    steps = (BEGIN, READ, omitted, READ, WRITE, READ, END)
    in_order = SeenTransaction(4, tuple((one, 1.0) for one in steps), is_block=True, is_in_order=True)
    together = SeenTransaction(2, ((BEGIN, 1.0), (READ, 5.0), (END, 1.0)), is_block=True)
    assert known([in_order, together], KINDS).groups == (
        SeenTransaction(
            4,
            ((BEGIN, 1.0), (READ, 2.0), (WRITE, 1.0), (READ, 1.0), (END, 1.0)),
            is_block=True,
            is_in_order=True,
        ),
        together,
    )
