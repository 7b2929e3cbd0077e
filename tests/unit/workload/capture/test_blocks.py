"""Kinds of blocks, from statements that were seen in one transaction, and from counts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from pgdyno.postgres.statement_counts import Sighting
from pgdyno.workload.capture.blocks import blocks_of, connected, transactions_in

ORDER = ((1, 2), (1, 3), (2, 3))  # 1 looks up the user, for an order (2, 3) and for a cart (4, 5)
CART = ((1, 4), (1, 5), (4, 5))


def seen(*transactions: Sequence[int]) -> list[Sighting]:
    """Sightings of one session that ran these statements in transactions."""
    return [
        Sighting(7, f"at {number}", statement)
        for number, statements in enumerate(transactions)
        for statement in statements
    ]


def test_kinds_that_share_a_statement_stay_apart() -> None:
    part = {1: 300.0, 2: 100.0, 3: 100.0, 4: 200.0, 5: 200.0}
    found = blocks_of([part], seen(*ORDER, *CART), 300)
    assert found.parts == [{1: 100.0, 2: 100.0, 3: 100.0}, {1: 200.0, 4: 200.0, 5: 200.0}]
    assert found.joined == []


def test_blocks_of_only_the_shared_statement_are_a_kind_if_so_many_were_counted() -> None:
    part = {1: 400.0, 2: 100.0, 3: 100.0, 4: 200.0, 5: 200.0}
    assert blocks_of([part], seen(*ORDER, *CART), 400).parts == [
        {1: 100.0, 2: 100.0, 3: 100.0},
        {1: 200.0, 4: 200.0, 5: 200.0},
        {1: 100.0},
    ]


def test_a_statement_that_some_kinds_share_is_in_those_that_it_was_seen_with() -> None:
    # 6 is a savepoint of orders (2, 3) and carts (4, 5), not of searches (7, 8). 1 is in all 450 blocks.
    part = {1: 450.0, 6: 300.0, 2: 100.0, 3: 100.0, 4: 200.0, 5: 200.0, 7: 150.0, 8: 150.0}
    together = seen(*ORDER, *CART, (1, 6), (2, 6), (5, 6), (1, 7), (7, 8))
    assert blocks_of([part], together, 450).parts == [
        {1: 100.0, 6: 100.0, 2: 100.0, 3: 100.0},
        {1: 200.0, 6: 200.0, 4: 200.0, 5: 200.0},
        {1: 150.0, 7: 150.0, 8: 150.0},
    ]


def test_repeated_statements_do_not_divide_a_kind() -> None:
    part = {1: 100.0, 2: 100.0, 3: 270.0}  # 2.7 lines in each order
    together = seen(*combinations(part, 2))
    assert blocks_of([part], together, 100).parts == [part]


def test_without_a_number_of_blocks_statements_that_were_seen_together_are_one_kind() -> None:
    part = {1: 300.0, 2: 100.0, 3: 100.0, 4: 200.0, 5: 200.0}
    assert blocks_of([part], seen(*ORDER, *CART), 0).parts == [part]


def test_parts_called_equally_often_are_joined_first_above_all_frequent_ones() -> None:
    parts = [{1: 100.0, 2: 100.0}, {3: 100.0}, {4: 7.0}, {5: 7.0}]
    found = blocks_of(parts, seen((1, 2)), 114)
    assert found.parts == [{4: 7.0}, {5: 7.0}, {1: 100.0, 2: 100.0, 3: 100.0}]
    assert found.joined == [{1: 100.0, 2: 100.0, 3: 100.0}]


def test_kinds_with_a_shared_statement_that_were_put_together_are_noted() -> None:
    # (2, 3), (4, 5) and (6, 7) were seen with 1 only. As three kinds they would be 350 blocks of 300.
    part = {1: 300.0, 2: 100.0, 3: 100.0, 4: 200.0, 5: 200.0, 6: 50.0, 7: 50.0}
    found = blocks_of([part], seen(*ORDER, *CART, (1, 6), (1, 7), (6, 7)), 300)
    mixed = {1: 200.0, 2: 100.0, 3: 100.0, 4: 200.0, 5: 200.0}
    assert (found.parts, found.joined) == ([{1: 50.0, 6: 50.0, 7: 50.0}, mixed, {1: 50.0}], [mixed])


def test_a_part_of_which_all_kinds_were_put_together_is_noted() -> None:
    part = {1: 300.0, 2: 200.0, 3: 200.0, 4: 200.0, 5: 200.0}  # 2 and 4 are at least once in one block
    found = blocks_of([part], seen(*ORDER, *CART), 300)
    assert (found.parts, found.joined) == ([part], [part])


def test_then_those_of_which_one_is_repeated() -> None:
    parts = [{1: 100.0, 2: 100.0}, {3: 140.0, 6: 140.0}, {4: 300.0}]
    assert blocks_of(parts, seen((1, 2), (3, 6)), 240).parts == [
        {3: 140.0, 6: 140.0},
        {1: 100.0, 2: 100.0, 4: 300.0},
    ]


def test_then_the_most_similar_ones() -> None:
    parts = [{1: 100.0}, {2: 70.0}, {3: 24.0}]
    assert blocks_of(parts, [], 124).parts == [{3: 24.0}, {1: 100.0, 2: 70.0}]


def test_parts_that_were_often_seen_and_never_together_are_no_parts_of_one() -> None:
    parts = [{1: 100.0}, {2: 100.0}, {3: 100.0}]
    often = seen(*[(1,), (2,)] * 20)
    found = blocks_of(parts, often, 100)
    assert found.parts == [{2: 100.0}, {1: 100.0, 3: 100.0}]
    assert blocks_of(parts, seen((1,), (2,)), 100).parts == [{1: 100.0, 2: 100.0, 3: 100.0}]


def test_groups_are_connected_transitively() -> None:
    assert connected([1, 2, 3, 4, 5], [(1, 2), (5, 2), (3, 9)]) == [[1, 2, 5], [3], [4]]


def test_a_part_has_as_many_transactions_as_most_of_its_statements_calls() -> None:
    assert transactions_in({1: 1000.0, 2: 1010.0, 3: 125.0, 4: 4000.0}) == 1005.0
    assert transactions_in({1: 30.0, 2: 10.0}) == 10.0
