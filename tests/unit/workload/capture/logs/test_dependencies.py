"""Parameters that have the same values, call after call."""

from __future__ import annotations

from pgdyno.workload.capture.logs.load import Equalities

READ, WRITE = 1, 2


def earlier(*transactions: tuple[str | None, str | None]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Compare the parameter of a read with that of a write, transaction by transaction."""
    found = Equalities()
    for read, write in transactions:
        before: dict[tuple[int, int], str] = {}
        found.add(before, READ, {1: read})
        found.add(before, WRITE, {1: write})
    return found.earlier()


def test_parameters_that_are_always_the_same_are_tied() -> None:
    assert earlier(*((str(number), str(number)) for number in range(10))) == {(WRITE, 1): [(READ, 1)]}


def test_parameters_that_differ_are_compared_and_not_tied() -> None:
    assert earlier(*((str(number), str(number + number % 2)) for number in range(10))) == {(WRITE, 1): []}


def test_few_values_that_happen_to_be_the_same_are_no_tie() -> None:
    assert earlier(*(("new", "new") for _ in range(100))) == {(WRITE, 1): []}


def test_values_that_are_not_known_are_not_compared() -> None:
    assert earlier(("1", None), (None, "1"), ("x" * 200, "x" * 200)) == {}


def test_parameters_of_one_statement_are_compared_too() -> None:
    found = Equalities()
    for number in range(10):
        found.add({}, READ, {1: str(number), 2: str(number), 3: "7"})
    assert found.earlier() == {(READ, 2): [(READ, 1)], (READ, 3): []}
