"""Values that a statement favours, as positions among the values of the column."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedStatement,
    CapturedTransaction,
    CapturedWorkload,
    ColumnValue,
    Letters,
)
from pgdyno.postgres.catalogued_tables import ColumnValues
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.positions import in_order, positions_of, with_positions

KEYS = ColumnValues(dense=(1, 20_000))
NAMES = ColumnValues(sample=tuple(f"name {number:04}" for number in range(1000)))


def favouring(share: float, few: Sequence[int], of: Sequence[int], count: int = 2000) -> list[str]:
    """Numbers, of which a share are from a few ones."""
    chance = random.Random(1)  # noqa: S311 — no secret
    return [str(chance.choice(few if chance.random() < share else of)) for _ in range(count)]


def test_keys_that_are_used_alike_are_drawn_as_frequently_as_their_rows() -> None:
    assert positions_of(favouring(0.0, [0], range(1, 20_001)), KEYS) == ()
    assert positions_of(favouring(0.0, [0], range(1, 4)), ColumnValues(dense=(1, 3))) == ()
    assert positions_of([f"name {n:0>4}" for n in favouring(0.0, [0], range(1000))], NAMES) == ()


def test_a_range_of_keys_that_is_used_often_keeps_its_share_and_its_place() -> None:
    # sysbench's own keys: three of four are in the middle hundredth
    bounds = positions_of(favouring(0.75, range(9_901, 10_101), range(1, 20_001)), KEYS)
    assert len(bounds) == 41
    assert bounds == tuple(sorted(bounds))
    middle = [one for one in bounds if 0.495 <= one <= 0.505]
    assert len(middle) == pytest.approx(0.75 * 41, abs=2)
    assert bounds[0] < 0.02
    assert bounds[-1] > 0.98


def test_newest_keys_that_are_used_most_stay_the_newest() -> None:
    # half of the calls use the last ten of a million keys: 0.99999 must not become 1
    drawn = favouring(0.5, range(999_991, 1_000_001), range(1, 1_000_001))
    bounds = positions_of(drawn, ColumnValues(dense=(1, 1_000_000)))
    assert sum(one > 0.99998 for one in bounds) == pytest.approx(20, abs=2)
    assert len({int(one * 1_000_000) for one in bounds if one > 0.99998}) > 5


def test_a_single_value_that_is_used_often_is_one_position() -> None:
    bounds = positions_of(favouring(0.1, [300], range(1, 1001), count=400), ColumnValues(dense=(1, 1000)))
    assert [one for one in bounds if int(one * 1000) == 299] == pytest.approx([0.2995] * 4, abs=1e-3)


def test_texts_have_positions_in_the_order_of_their_characters() -> None:
    drawn = [f"name {number:0>4}" for number in favouring(0.9, range(900, 1000), range(1000))]
    bounds = positions_of(drawn, NAMES)
    assert sum(one >= 0.9 for one in bounds) == pytest.approx(0.91 * 41, abs=2)
    assert in_order(("b", "a10", "a9")) == ["a10", "a9", "b"]
    assert in_order(("10", "9", "-1")) == ["-1", "9", "10"]


def test_few_values_and_values_of_another_kind_have_no_positions() -> None:
    assert positions_of(["7"] * 49, KEYS) == ()
    assert positions_of(["7"] * 50, KEYS) != ()
    assert positions_of([*["7"] * 99, "seven"], KEYS) == positions_of(["7"] * 99, KEYS) != ()
    assert positions_of([*["7"] * 97, "seven", "0", "20001"], KEYS) == ()  # keys are 1 to 20,000
    assert positions_of(["7"] * 50, ColumnValues(sample=("7",) * 49)) == ()


def test_booleans_of_a_log_are_those_of_the_column() -> None:
    flags = ColumnValues(sample=("false",) * 900 + ("true",) * 100)
    for yes in ("t", "true", "1", "TRUE"):
        bounds = positions_of([yes] * 100, flags)
        assert bounds == pytest.approx([0.95] * 41)
    assert positions_of(["f"] * 90 + ["t"] * 10, flags) == ()  # as frequent as the rows


def test_values_that_a_column_of_few_has_not_are_left_out() -> None:
    states = ColumnValues(sample=("new",) * 50 + ("sent",) * 950)
    assert positions_of(["new"] * 100, states) == pytest.approx([0.025] * 41)
    assert positions_of(["NEW"] * 100, states) == ()


def test_positions_belong_to_parameters_of_a_statement_that_are_values_of_columns() -> None:
    seen, read = Seen(1, 1.0, 1, 1, 0), "SELECT * FROM t WHERE id = $1 AND name = $2 AND note = $3"
    calls = CapturedCall("read", 1.0, (ColumnValue("s.t.id"), ColumnValue("s.t.name"), Letters(1, 9)))
    workload = CapturedWorkload(
        "w",
        "18",
        1,
        "d",
        1.0,
        1,
        (CapturedStatement("read", read, seen),),
        (CapturedTransaction(1.0, (calls,)),),
    )
    wanted: list[str] = []

    def values_of(column: str) -> ColumnValues:
        wanted.append(column)
        return KEYS

    drawn = {5: {1: ["20000"] * 50, 2: ["1"] * 49, 3: ["1"] * 99}, 6: {1: ["1"] * 99}}
    [found] = with_positions(workload, {5: read, 6: "SELECT 1"}, drawn, values_of).statements
    assert {*found.favours} == {1}
    assert found.favours[1] == pytest.approx([0.999975] * 41)
    assert wanted == ["s.t.id"]
