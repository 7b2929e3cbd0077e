"""Parameters that have the same values call after call, or follow from others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pgdyno.workload.capture.logs.dependencies import Dependencies, TransactionSoFar

READ, WRITE = 1, 2
DISTRICTS = (("1", 10), ("2", 500))


def dependencies(*transactions: Sequence[tuple[int, Mapping[int, str | None]]]) -> Dependencies:
    """Compare the values of calls, transaction by transaction."""
    found, so_far = Dependencies(), TransactionSoFar()
    for calls in transactions:
        so_far.clear()
        for statement, values in calls:
            found.add(so_far, statement, values)
    return found


def earlier(*transactions: tuple[str | None, str | None]) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """Compare the parameter of a read with that of a write, transaction by transaction."""
    return dependencies(*([(READ, {1: read}), (WRITE, {1: write})] for read, write in transactions)).earlier()


def test_parameters_that_are_always_the_same_are_tied() -> None:
    assert earlier(*((str(number), str(number)) for number in range(10))) == {(WRITE, 1): [(READ, 1)]}


def test_a_call_in_a_loop_is_compared_with_the_latest_calls() -> None:
    turns = [[(READ, {1: f"{one}"}), (WRITE, {1: f"{one}"})] for one in range(14)]
    found = dependencies(*([*turns[one], *turns[one + 1]] for one in range(0, 14, 2)))
    assert found.earlier() == {(WRITE, 1): [(READ, 1)], (READ, 1): []}
    assert found.again() == {(WRITE, 1): [(READ, 1)]}


def test_a_statement_that_is_called_twice_hides_no_tie_of_transactions_that_call_it_once() -> None:
    once = [[(READ, {1: f"{one}"}), (WRITE, {1: f"{one}"})] for one in range(9)]
    twice = [[(READ, {1: f"{one}"}), (READ, {1: f"{one + 99}"}), (WRITE, {1: f"{one}"})] for one in range(9)]
    found = dependencies(*once, *twice)
    assert (found.earlier(), found.again()) == ({(WRITE, 1): [(READ, 1)]}, {})


def test_parameters_that_differ_are_compared_and_not_tied() -> None:
    assert earlier(*((str(number), str(number + number % 2)) for number in range(10))) == {(WRITE, 1): []}


def test_a_parameter_that_is_the_same_in_all_turns_repeats_itself() -> None:
    # Orders of three lines each, which differ in the second parameter.
    orders = [[(WRITE, {1: f"{one}", 2: f"{one + turn}"}) for turn in range(3)] for one in range(9)]
    found = dependencies(*orders)
    assert found.again() == {(WRITE, 1): [(WRITE, 1)]}
    assert found.earlier() == {(WRITE, 2): []}  # the first line has the same number twice
    assert dependencies(*([(WRITE, {1: "7"})] * 3 for _ in range(9))).again() == {}  # a constant


def test_few_values_that_happen_to_be_the_same_are_no_tie() -> None:
    assert earlier(*(("new", "new") for _ in range(100))) == {(WRITE, 1): []}


def test_values_that_are_not_known_are_not_compared() -> None:
    assert earlier(("1", None), (None, "1"), ("x" * 200, "x" * 200)) == {}


def test_parameters_of_one_statement_are_compared_too() -> None:
    calls = [{1: str(number), 2: str(number), 3: "7"} for number in range(10)]
    found = dependencies(*([(READ, values)] for values in calls))
    assert found.earlier() == {(READ, 2): [(READ, 1)], (READ, 3): []}


def test_a_parameter_that_is_always_one_less_than_another_is_shifted() -> None:
    numbers = [7, 3, 9, 100, 55, 4]
    found = dependencies(*([(READ, {1: str(one)}), (WRITE, {1: str(one - 1), 2: "x"})] for one in numbers))
    assert found.shifted() == {(WRITE, 1): ((READ, 1), -1)}
    assert found.earlier() == {(WRITE, 1): [], (WRITE, 2): []}


def test_differences_that_vary_and_constants_are_not_shifted() -> None:
    varying = dependencies(*([(READ, {1: str(one)}), (WRITE, {1: str(2 * one)})] for one in range(9)))
    assert varying.shifted() == {}
    constant = dependencies(*([(READ, {1: "5"}), (WRITE, {1: "6"})] for _ in range(9)))
    assert constant.shifted() == {}
    own = dependencies(*([(READ, {1: str(one), 2: str(one + 99)})] for one in range(9)))  # a range
    assert own.shifted() == {}


def test_a_pair_that_was_seen_once_is_no_tie_however_varied_the_parameter() -> None:
    alone = [[(WRITE, {1: str(1000 + 7 * one)})] for one in range(9)]
    once = [(READ, {1: "17"}), (WRITE, {1: "123456789"})]
    found = dependencies(*alone, once)
    assert (found.shifted(), found.earlier()) == ({}, {(WRITE, 1): []})


def test_the_memory_of_counters_is_bounded_by_parameters() -> None:
    wide = {number: str(number) for number in range(1, 100)}
    assert dependencies(*([(WRITE, {**wide, 1: str(one)})] for one in range(9))).steps() == {}


def test_numbers_of_lines_are_ordinals() -> None:
    order = [(WRITE, {1: str(line), 2: str(77 + line % 2)}) for line in range(1, 5)]
    assert dependencies(order, order, order).ordinals() == {(WRITE, 1)}
    assert dependencies(*([(WRITE, {1: "1"})] for _ in range(50))).ordinals() == frozenset()


def test_a_counter_of_each_row_steps_by_one() -> None:
    # Two districts, whose next order is 11, 12, … and 501, 502, …
    calls = [{1: str(first + number), 2: district} for number in range(1, 6) for district, first in DISTRICTS]
    assert dependencies(*([(WRITE, values)] for values in calls)).steps() == {(WRITE, 1): 1}
    drawn = [{1: str(37 * number % 11), 2: "1"} for number in range(10)]
    assert dependencies(*([(WRITE, values)] for values in drawn)).steps() == {}
