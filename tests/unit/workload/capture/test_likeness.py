"""How like the original a replay is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedStatement,
    CapturedTransaction,
    CapturedWorkload,
    Omitted,
)
from pgdyno.model.experiments.likeness import Likeness
from pgdyno.postgres.statement_counts import Ended, Seen
from pgdyno.workload.capture.likeness import ReplayedLoad, likeness, seen_by_name


def workload(*seen: Seen, omitted: Seen | None = None) -> CapturedWorkload:
    statements = tuple(CapturedStatement(f"s{number}", "SELECT", one) for number, one in enumerate(seen))
    left_out = () if omitted is None else (Omitted("COPY", "why", omitted),)
    return CapturedWorkload("w", "18.0", 1, "db", 60.0, 1, statements, (), left_out)


def of(original: CapturedWorkload, replayed: Mapping[str, Seen]) -> Likeness:
    """The likeness of a replay in which no transaction failed."""
    return likeness(original, ReplayedLoad(replayed, transactions=100, failed=0))


def seen(calls: int, time_ms: float = 1.0, rows: int = 0, blocks: int = 0, wal_records: int = 0) -> Seen:
    return Seen(calls, time_ms, rows, blocks, wal_records)


def test_equal_shares_are_alike_however_many_there_are() -> None:
    original = workload(seen(10, 5.0, 10, 100, 0), seen(30, 15.0, 30, 300, 0))
    found = of(original, {"s0": seen(100, 1.0, 100, 7, 0), "s1": seen(300, 3.0, 300, 21, 0)})
    assert found.least == pytest.approx(1.0)


def test_the_one_number_is_that_of_what_differs_most() -> None:
    found = of(workload(seen(10, 50.0), seen(10, 50.0)), {"s0": seen(10, 80.0), "s1": seen(10, 20.0)})
    assert found.by_quantity["calls"] == pytest.approx(1.0)
    assert found.by_quantity["time"] == pytest.approx(0.7)
    assert found.least == pytest.approx(0.7)
    assert found.statements[0].original["time"] == pytest.approx(0.5)
    assert found.statements[0].replay["time"] == pytest.approx(0.8)
    assert (found.statements[0].original_ms, found.statements[0].replay_ms) == (5.0, 8.0)


def test_what_is_not_replayed_is_missing_from_the_likeness() -> None:
    found = of(workload(seen(90), omitted=seen(10)), {"s0": seen(90)})
    assert found.by_quantity["calls"] == pytest.approx(0.9)


def test_a_statement_that_was_not_called_has_no_share() -> None:
    found = of(workload(seen(50), seen(50)), {"s0": seen(10)})
    assert found.by_quantity["calls"] == pytest.approx(0.5)
    assert found.statements[1].replay_ms is None


def test_wal_of_a_load_that_reads_is_alike_unless_the_replay_writes() -> None:
    original = workload(seen(10))
    assert of(original, {"s0": seen(10)}).by_quantity["WAL records"] == 1.0
    assert of(original, {"s0": seen(10, wal_records=5)}).by_quantity["WAL records"] == 0.0


def test_few_wal_records_of_hint_bits_make_no_difference() -> None:
    assert of(workload(seen(1000, wal_records=9)), {"s0": seen(1000)}).by_quantity["WAL records"] == 1.0
    assert of(workload(seen(1000)), {"s0": seen(1000, wal_records=9)}).by_quantity["WAL records"] == 1.0
    assert of(workload(seen(1000, wal_records=11)), {"s0": seen(1000)}).by_quantity["WAL records"] == 0.0


def test_time_and_blocks_refuse_no_workload_with_other_sessions() -> None:
    replayed = {"begin": seen(50), "s": seen(100, 900.0), "commit": seen(20), "rollback": seen(30)}
    load = ReplayedLoad(replayed, transactions=100, failed=0, sessions=(16, 1))
    found = likeness(replace(BLOCK, clients=16), load)
    assert found.by_quantity["time"] < 0.5
    assert (found.is_another_workload, found.most_different) == (False, "sessions")
    same = likeness(BLOCK, replace(load, sessions=(4, 4)))
    assert (same.is_another_workload, same.most_different) == (True, "time")


def test_a_begin_that_the_server_did_not_count_is_left_out() -> None:
    statements = (
        CapturedStatement("begin", "BEGIN", seen(1), is_prepared=False),
        CapturedStatement("s", "SELECT", seen(100)),
    )
    calls = (CapturedCall("begin", 1.0), CapturedCall("s", 1.0))
    block = CapturedTransaction(100, calls)
    captured = CapturedWorkload("w", "18.0", 1, "db", 60.0, 1, statements, (block,))
    assert of(captured, {"begin": seen(50), "s": seen(50)}).by_quantity["calls"] == 1.0
    counted = replace(captured, statements=(replace(statements[0], seen=seen(100)), statements[1]))
    assert of(counted, {"begin": seen(1), "s": seen(99)}).by_quantity["calls"] == pytest.approx(0.51)


def test_quantities_that_are_not_known_of_the_original_are_left_out() -> None:
    original = replace(workload(seen(10), seen(30)), counted=("calls",))
    found = of(original, {"s0": seen(10, 99.0, 7, 7, 7), "s1": seen(30)})
    assert found.by_quantity.keys() == {"calls", "empty transactions", "failed transactions"}
    assert found.least == pytest.approx(1.0)


BLOCK = CapturedWorkload(
    "w", "18.0", 1, "db", 60.0, 4,
    (
        CapturedStatement("begin", "BEGIN", seen(50), is_prepared=False),
        CapturedStatement("s", "SELECT", seen(100)),
        CapturedStatement("commit", "COMMIT", seen(20), is_prepared=False),
        CapturedStatement("rollback", "ROLLBACK", seen(30), is_prepared=False),
    ),
    (CapturedTransaction(50, (CapturedCall("begin", 1.0), CapturedCall("s", 1.0))),),
    ended=Ended(committed=70, rolled_back=30),
)  # fmt: skip


def test_a_replay_that_rolls_everything_back_is_not_the_workload() -> None:
    replayed = {"begin": seen(100), "s": seen(200), "rollback": seen(100)}
    found = likeness(BLOCK, ReplayedLoad(replayed, transactions=200, failed=0))
    assert found.of_transactions["rollbacks"] == (0.3, 0.5)
    assert found.by_quantity["rollbacks"] == pytest.approx(0.8)
    assert found.of_transactions["transaction blocks"] == (0.5, 0.5)
    none = likeness(BLOCK, ReplayedLoad({"begin": seen(9), "s": seen(200)}, transactions=9, failed=91))
    assert none.of_transactions["rollbacks"] == (0.3, 0.91)
    assert none.by_quantity["failed transactions"] == pytest.approx(0.09)
    assert none.is_another_workload


def test_transactions_in_which_nothing_is_drawn_make_a_replay_unlike() -> None:
    thirds = tuple(CapturedCall(name, 1 / 3) for name in ("s", "s"))
    mixed = replace(BLOCK, transactions=(CapturedTransaction(30, (CapturedCall("begin", 1.0), *thirds)),))
    found = likeness(mixed, ReplayedLoad({}, transactions=30, failed=0))
    assert found.of_transactions["empty transactions"] == pytest.approx((0.0, 4 / 9))


def test_other_sessions_make_a_replay_unlike_and_are_the_user_s_choice() -> None:
    replayed = {"begin": seen(50), "s": seen(100), "commit": seen(20), "rollback": seen(30)}
    found = likeness(BLOCK, ReplayedLoad(replayed, transactions=100, failed=0, sessions=(4, 16)))
    assert (found.by_quantity["sessions"], found.least) == (0.25, 0.25)
    assert not found.is_another_workload


def test_lists_that_the_server_counts_as_one_are_shared_by_the_statements_that_have_them() -> None:
    lists = (
        "SELECT a FROM t WHERE b IN ($1, $2) AND c = $3",
        "SELECT a FROM t WHERE b IN ($1, $2, $3) AND c = $4",
    )
    statements = tuple(
        CapturedStatement(name, sql, seen(calls))
        for name, sql, calls in zip("pq", lists, (10, 30), strict=True)
    )
    shown = "SELECT a FROM t WHERE b IN ($1 /*, ... */) AND c = $2"
    original = replace(workload(), statements=statements)
    found = seen_by_name(original, {5: shown, 6: "SELECT 1"}, {5: seen(400, 8.0), 6: seen(1), 7: seen(1)})
    assert {name: (its.calls, its.time_ms) for name, its in found.items()} == {
        "p": (100, 2.0),
        "q": (300, 6.0),
    }


def test_constants_of_a_script_are_known_again_in_the_server_s_counts() -> None:
    statement = CapturedStatement("s", "SELECT a FROM t WHERE b = $1 LIMIT 5", seen(1))
    original = replace(workload(), statements=(statement,))
    assert seen_by_name(original, {3: "SELECT a FROM t WHERE b = $1 LIMIT $2"}, {3: seen(7)}) == {
        "s": seen(7)
    }
