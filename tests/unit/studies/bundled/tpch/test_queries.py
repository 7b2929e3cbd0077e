"""The 22 queries: every value stands in the text."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from pgdyno.studies.bundled.tpch.queries import (
    NUMBERS,
    ORDERS,
    answer_of,
    known_answers,
    normalised,
    query_text,
    validation_parameters,
)


def test_values_stand_in_the_text_quoted_where_the_template_quotes_them() -> None:
    text = query_text(6, {"date": "1994-01-01", "discount": "0.06", "quantity": "24"})
    assert "l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01" in text
    assert "DATE '1994-01-01'" in text
    assert query_text(9, {"color": "o'brien"}).count("'o''brien'") == 1


@pytest.mark.parametrize("number", NUMBERS)
def test_no_name_of_a_value_is_left_in_a_query(number: int) -> None:
    assert ":" not in query_text(number, validation_parameters(number, 1000))


def test_a_missing_value_is_an_error_and_no_empty_string() -> None:
    with pytest.raises(KeyError, match="quantity"):
        query_text(6, {"date": "1994-01-01", "discount": "0.06"})


def test_every_stream_runs_every_query_once_and_no_two_in_the_same_order() -> None:
    assert {tuple(sorted(order)) for order in ORDERS} == {tuple(range(1, 23))}
    assert len(set(ORDERS)) == len(ORDERS)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("25.5751546"), "25.58"),
        (25.5751546, "25.58"),
        (4, "4.00"),
        (Decimal("-0.004"), "0.00"),
        (1.5e3, "1500.00"),
        (date(1995, 3, 1), "1995-03-01"),
        ("Brand#45  ", "Brand#45"),
        ("13-555-0100", "13-555-0100"),
        (None, ""),
    ],
)
def test_numbers_have_two_decimals_and_texts_no_blanks_around(value: object, text: str) -> None:
    assert normalised(value) == text


def test_the_same_rows_in_another_order_or_of_another_type_are_the_same_answer() -> None:
    one = answer_of([("A", Decimal("1.001")), ("B", 2)])
    assert one == answer_of([("B ", "2.00"), ("A", 1.001)])
    assert one.rows == 2


@pytest.mark.parametrize(
    "rows", [[("A", 1)], [("A", 1.02), ("B", 2)], [("A", 1), ("B", 2), ("B", 2)], [("A", 1), ("C", 2)]]
)
def test_a_row_less_or_more_or_another_value_is_another_answer(rows: list[tuple[object, ...]]) -> None:
    assert answer_of(rows) != answer_of([("A", 1), ("B", 2)])


def test_all_22_answers_are_known_at_three_scales() -> None:
    assert all(known_answers(thousandths).keys() == {*range(1, 23)} for thousandths in (10, 100, 1000))
    assert known_answers(250) == {}


def test_known_answers_have_as_many_rows_as_those_that_the_tpc_publishes_for_scale_1() -> None:
    published = [4, 100, 10, 5, 5, 1, 4, 2, 175, 20, 1048, 2, 42, 1, 1, 18314, 1, 57, 1, 186, 100, 7]
    assert [known_answers(1000)[number].rows for number in range(1, 23)] == published
