"""Values of parameters from a log: kept only where the user wants it, and drawn evenly over all calls."""

from __future__ import annotations

import pytest

from pgdyno.workload.capture.logs.values import Values


def test_values_are_kept_only_where_that_is_wanted() -> None:
    for is_keeping, kept in ((False, {}), (True, {1: {"a": 2, None: 1}, 2: {"5": 3}})):
        values = Values(is_keeping)
        for text in ("a", "a", None):
            values.add(7, {1: text, 2: "5"})
        assert {number: dict(counts) for number, counts in values.kept[7].items()} == kept
        assert [dict(call) for call in values.numbers[7]] == [{2: 5.0}] * 3


def test_more_values_than_are_kept_are_noted() -> None:
    values = Values(is_keeping=True)
    for number in range(1001):
        values.add(1, {1: f"v{number}"})
    assert values.full == {(1, 1)}
    assert len(values.kept[1][1]) == 1000
    [note] = values.notes()
    assert note.startswith("1 parameters had more values than are kept (1000 for each, ")
    assert list(Values(is_keeping=True).notes()) == []


def test_of_many_calls_a_random_sample_is_drawn_and_long_texts_never() -> None:
    values = Values(is_keeping=False)
    for number in range(1, 20_001):
        values.add(1, {1: str(number), 2: "x" * 201, 3: None})
    drawn = values.drawn()[1]
    assert set(drawn) == {1}
    found = sorted(map(int, drawn[1]))
    assert len(set(found)) == 1000
    # uniform on 1 to 20,000: the mean of 1,000 has a standard error of 183, an even share one of 16
    assert sum(found) / 1000 == pytest.approx(10_000, abs=900)
    assert sum(number % 2 == 0 for number in found) == pytest.approx(500, abs=80)


def test_statements_beyond_all_room_are_noted_and_have_no_values() -> None:
    values = Values(is_keeping=False)
    call = dict.fromkeys(range(1, 101), "1")
    for statement in range(11):
        for _ in range(1000):
            values.add(statement, call)
    assert set(values.drawn()) == set(range(10))
    assert list(values.notes()) == [
        "1,000,000 values were sampled: the values that the original uses most are unknown for 1 statement"
    ]
