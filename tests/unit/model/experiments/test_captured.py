"""Invariants: answers that are as they have to be, and those that a load has changed."""

from __future__ import annotations

import pytest

from pgdyno.model.experiments.captured import (
    Expectation,
    Is,
    NoRows,
    QueryAnswer,
    Unchanged,
    why_broken,
    why_wrong,
)

NONE = QueryAnswer(0)
NULL = QueryAnswer(1)
SEVERAL = QueryAnswer(2, "5")


def one(value: str) -> QueryAnswer:
    return QueryAnswer(1, value)


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        (Is(0), one("0")),
        (Is(0), one("0.00")),
        (Is(1e3), one("1000")),
        (Is(0.1), one("0.10")),
        (Is(value=True), one("t")),
        (Is(value=False), one("f")),
        (Is("0"), one("0")),
        (Is("open"), one("open")),
        (NoRows(), NONE),
        (Unchanged(), NONE),
        (Unchanged(), NULL),
        (Unchanged(), one("17")),
    ],
)
def test_an_answer_that_is_as_it_has_to_be(expected: Expectation, answer: QueryAnswer) -> None:
    assert why_wrong(expected, answer) is None
    assert why_broken(expected, answer, answer) is None


@pytest.mark.parametrize(
    ("expected", "answer", "why"),
    [
        (Is(0), one("3"), "its query returns 3, but must return 0"),
        (Is(0), one("none"), "its query returns none, but must return 0"),
        (Is(1), one("t"), "its query returns t, but must return 1"),
        (Is(value=True), one("1"), "its query returns 1, but must return t"),
        (Is("0"), one("0.0"), "its query returns 0.0, but must return 0"),
        (Is(0), NULL, "its query returns NULL, but must return 0"),
        (Is(0), NONE, "its query returns no row, but must return 0"),
        (Is(5), SEVERAL, "its query returns several rows, but must return 5"),
        (NoRows(), one("7"), "its query returns a row, 7, but must return none"),
        (NoRows(), SEVERAL, "its query returns several rows, but must return none"),
        (Unchanged(), SEVERAL, "its query returns several rows, which cannot be compared"),
    ],
)
def test_an_answer_that_is_not(expected: Expectation, answer: QueryAnswer, why: str) -> None:
    assert why_wrong(expected, answer) == why


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (one("5"), one("6"), "its query returned 5 before the load and 6 after it"),
        (NULL, one("0"), "its query returned NULL before the load and 0 after it"),
        (one(""), NONE, "its query returned  before the load and no row after it"),
    ],
)
def test_a_load_that_changes_what_it_must_not(before: QueryAnswer, after: QueryAnswer, why: str) -> None:
    assert why_broken(Unchanged(), before, after) == why


def test_a_load_may_leave_another_answer_where_one_is_given() -> None:
    assert why_broken(Is(0), one("3"), one("0")) is None
    assert why_broken(Is(0), one("0"), one("3")) == "its query returns 3, but must return 0"
