"""Ends of blocks, from counts and from sessions that were seen after them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pgdyno.postgres.statement_counts import SightedEnd
from pgdyno.workload.capture.block_ends import BlockEnds, with_ends
from pgdyno.workload.capture.statements import TransactionPart
from pgdyno.workload.capture.transactions import Grouping, SeenTransaction

READ, WRITE, ALONE = 3, 4, 5
KINDS = dict.fromkeys((READ, WRITE, ALONE), TransactionPart.QUERY)


def exact(ended: Sequence[SightedEnd], rolled_back_share: float) -> BlockEnds:
    """Ends where the server counted COMMIT and ROLLBACK."""
    return BlockEnds(ended, rolled_back_share, is_exact=True)


def ends(*each: tuple[Sequence[int], bool], times: int = 10) -> list[SightedEnd]:
    return [SightedEnd(frozenset(statements), is_rolled_back) for statements, is_rolled_back in each] * times


BLOCKS = Grouping(
    (
        SeenTransaction(600, ((READ, 2.0),), is_block=True),
        SeenTransaction(400, ((READ, 1.0), (WRITE, 1.0)), is_block=True),
        SeenTransaction(70, ((ALONE, 1.0),), is_block=False),
    ),
    untold=0,
    guessed=(),
)


def test_without_rollbacks_or_with_nothing_else_no_end_needs_to_be_seen() -> None:
    assert with_ends(BLOCKS, KINDS, exact([], 0.004)) == BLOCKS
    found = with_ends(BLOCKS, KINDS, exact([], 1.0)).groups
    assert [(one.count, one.is_rolled_back) for one in found] == [(70, False), (600, True), (400, True)]


def test_a_kind_of_which_some_were_rolled_back_becomes_two_with_their_statements() -> None:
    # Of 1,000 blocks all read and 400 write; those that write are committed, half of the others as well.
    mixed = Grouping((SeenTransaction(1000, ((READ, 1.0), (WRITE, 0.4)), is_block=True),), 0, ())
    observed = ends(*[([READ, WRITE], False)] * 4, *[([READ], True)] * 3, *[([READ], False)] * 3)
    found = with_ends(mixed, KINDS, exact(observed, 0.31))
    committed, rolled_back = found.groups
    assert [committed.count, rolled_back.count] == pytest.approx([690, 310])
    assert dict(committed.calls) == {READ: 1.0, WRITE: pytest.approx(0.58, abs=0.001)}
    assert dict(rolled_back.calls) == {READ: 1.0}
    assert (committed.is_rolled_back, rolled_back.is_rolled_back, found.drawn_rollbacks) == (False, True, 0.0)


def test_counts_decide_where_few_ends_were_seen() -> None:
    found = with_ends(BLOCKS, KINDS, exact([], 0.595)).groups  # 600 of 1,000 were rolled back
    assert {one.count: one.is_rolled_back for one in found} == {70: False, 600: True, 400: False}


def test_equal_counts_leave_it_open_unless_ends_were_seen() -> None:
    equal = Grouping(
        (
            SeenTransaction(500, ((READ, 1.0),), is_block=True),
            SeenTransaction(500, ((WRITE, 1.0),), is_block=True),
        ),
        0,
        (),
    )
    assert with_ends(equal, KINDS, exact([], 0.5)).drawn_rollbacks == 0.5
    strays = ends(([READ], True), ([READ], True), ([READ], True), ([READ], False), ([WRITE], False))
    found = with_ends(equal, KINDS, exact(strays, 0.495))
    assert [(one.calls[0][0], one.is_rolled_back) for one in found.groups] == [(READ, True), (WRITE, False)]


def test_where_counts_do_not_agree_all_kinds_have_the_counted_share() -> None:
    observed = ends(([READ], True), ([READ, WRITE], False))  # half of them, but a tenth was counted
    found = with_ends(BLOCKS, KINDS, exact(observed, 0.1))
    assert [(one.count, one.is_rolled_back) for one in found.groups] == [
        (70, False), (540, False), (60, True), (360, False), (40, True),
    ]  # fmt: skip
    assert found.drawn_rollbacks == 0.1


def test_rare_commits_of_one_kind_stay() -> None:
    # 24 of 25 transactions read and are rolled back, the other one also writes and is committed.
    mixed = Grouping((SeenTransaction(1000, ((READ, 1.0), (WRITE, 0.04)), is_block=True),), 0, ())
    observed = [*ends(([READ], True), times=72), *ends(([READ, WRITE], False), times=5)]
    committed, rolled_back = with_ends(mixed, KINDS, exact(observed, 0.96)).groups
    assert committed.count == pytest.approx(40)
    assert not committed.is_rolled_back
    assert dict(committed.calls)[WRITE] == pytest.approx(1.0)
    assert dict(rolled_back.calls) == {READ: pytest.approx(1.0, abs=0.05)}


def test_failed_statements_outside_blocks_roll_no_block_back() -> None:
    # COMMIT was prepared and not counted; the database counted many failed single statements.
    observed = ends(([READ], False), ([READ, WRITE], False))
    found = with_ends(BLOCKS, KINDS, BlockEnds(observed, 0.65, is_exact=False))
    assert not any(one.is_rolled_back for one in found.groups)
    assert (found.drawn_rollbacks, found.uncounted_ends) == (0.0, 0.0)


def test_kinds_whose_ends_were_seen_keep_them_and_others_have_the_rest() -> None:
    observed = ends(([READ], False))
    blocks = Grouping(
        (
            SeenTransaction(600, ((READ, 1.0),), is_block=True),
            SeenTransaction(400, ((WRITE, 1.0),), is_block=True),
        ),
        0,
        (),
    )
    found = with_ends(blocks, KINDS, exact(observed, 0.2))
    assert [one.count for one in found.groups] == pytest.approx([600, 200, 200])
    assert [one.is_rolled_back for one in found.groups] == [False, False, True]
    assert found.drawn_rollbacks == pytest.approx(0.2)
