"""Counts of statements that are stored: the costly ones by name, the same for all servers."""

from __future__ import annotations

import pytest
from tests.unit.measure.verdicts.test_statements import counted

from pgdyno.model.experiments.statements import OTHERS, UNNAMED, trimmed


def test_statements_that_take_hardly_any_time_are_stored_as_one() -> None:
    many = {f"s{number}": counted(10, 0.1) for number in range(3000)} | {"big": counted(1000, 1.0)}
    (kept,) = trimmed([many])
    assert kept.keys() == {"big", OTHERS}
    assert kept["big"] == counted(1000, 1.0)
    others = kept[OTHERS]
    assert (others.calls, others.rows, others.blocks) == (30000, 30000, 90000)
    assert others.time_ms == pytest.approx(3000.0)
    assert trimmed([{"a": counted(1, 1.0)}]) == [{"a": counted(1, 1.0)}]


def test_all_servers_keep_the_same_statements() -> None:
    slow = {"big": counted(1000, 20.0), "lookup": counted(100, 20.0), UNNAMED: counted(1, 0.001)}
    fast = {"big": counted(1000, 20.0), "lookup": counted(400, 0.02), "rare": counted(1, 0.001)}
    assert trimmed([slow, fast]) == [
        slow,
        {"big": fast["big"], "lookup": fast["lookup"], OTHERS: fast["rare"]},
    ]
