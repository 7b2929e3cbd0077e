"""What was counted between two readings of pg_stat_statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pgdyno.postgres.statement_counts import Ended, NewCounts, Seen, StatementCounts, difference, merged

NONE_ENDED = Ended(0, 0)


def counts(
    calls: Mapping[int, int],
    *,
    nested: int = 0,
    ended: Ended = NONE_ENDED,
    evicted: int | None = 0,
    reset_at: str | None = "then",
) -> StatementCounts:
    seen = {one: Seen(count, 2.0 * count, 3 * count, 4 * count, 5 * count) for one, count in calls.items()}
    return StatementCounts(seen, dict.fromkeys(calls, 1), nested, ended, evicted, reset_at)


def test_the_difference_is_of_each_count_and_leaves_out_what_was_not_called() -> None:
    found = difference(
        counts({1: 10, 2: 5}, nested=3, ended=Ended(7, 1)),
        counts({1: 12, 2: 5, 3: 1}, nested=10, ended=Ended(9, 4)),
    )
    statements = {1: Seen(2, 4.0, 6, 8, 10), 3: Seen(1, 2.0, 3, 4, 5)}
    assert found == NewCounts(statements, {1: 0, 2: 0, 3: 1}, 7, Ended(2, 3), is_evicting=False)
    assert found.ended is not None
    assert found.ended.rolled_back_share == 0.6
    assert Ended(3, 1).since(Ended(9, 0)) is None  # reset
    assert Ended(0, 0).rolled_back_share == 0.0


def test_forgotten_statements_are_said() -> None:
    found = difference(counts({1: 1}, evicted=0), counts({1: 2}, evicted=1))
    assert found is not None
    assert found.is_evicting


def test_a_statement_that_was_forgotten_and_counted_anew_is_counted_from_then() -> None:
    found = difference(counts({1: 100}, evicted=5), counts({1: 3}, evicted=6))
    assert found is not None
    assert found.seen[1].calls == 3


def test_counts_of_several_ids_are_added_up() -> None:
    found = difference(counts({}), counts({1: 10, 2: 5, 3: 1}))
    assert found is not None
    whole = merged(replace(found, plans={1: 2, 2: 3, 3: 4}), {2: 1})
    assert {one: seen.calls for one, seen in whole.seen.items()} == {1: 15, 3: 1}
    assert whole.plans == {1: 5, 3: 4}


def test_there_is_no_difference_across_a_reset() -> None:
    assert difference(counts({1: 1}), counts({1: 2}, reset_at="later")) is None
    assert difference(counts({1: 5}, reset_at=None), counts({1: 2}, reset_at=None)) is None
