"""Statements as trees: parameters, comments, constants, and what surrounds them."""

from __future__ import annotations

import pytest
from sqlglot import exp

from pgdyno.workload.capture.syntax import (
    array_operand,
    assigned,
    constants,
    is_squashed,
    number_of,
    parameter_count,
    tree,
    without_comments,
    without_sums,
)


def placeholder(sql: str) -> exp.Expression:
    parsed = tree(sql)
    assert parsed is not None
    [found] = parsed.find_all(exp.Placeholder)
    return found


@pytest.mark.parametrize(
    ("sql", "count"),
    [
        ("SELECT 1", 0),
        ("SELECT $2, $10, $1", 10),
        ("SELECT '$3', \"$4\" -- $5\n, $1 /* $6 */", 1),
        ("SELECT 'it''s $2', $1", 1),
    ],
)
def test_parameters_are_counted_outside_quotes_and_comments(sql: str, count: int) -> None:
    assert parameter_count(sql) == count


def test_comments_go_and_quoted_ones_stay() -> None:
    sql = " SELECT '--a', \"/*b*/\" /* secret\n */ FROM t -- secret\n"
    assert without_comments(sql) == "SELECT '--a', \"/*b*/\"   FROM t"
    assert is_squashed("SELECT 1 WHERE a IN ($1 /*, ... */)")
    assert not is_squashed("SELECT 1 WHERE a IN ($1, $2)")


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT 'a', 12, 7 FROM t", ["'a'", "12"]),
        ("SELECT x::numeric(10,2) FROM t ORDER BY 12", []),
        ("SELECT nextval('orders_id_seq')", []),
        ("SELECT nextval('orders_id_seq'), lower('Secret')", ["'Secret'"]),
    ],
)
def test_constants_are_strings_and_numbers_of_several_digits(sql: str, found: list[str]) -> None:
    parsed = tree(sql)
    assert parsed is not None
    assert constants(parsed) == found


def test_a_text_that_is_no_sql_has_no_tree() -> None:
    assert tree("SELECT FROM WHERE (") is None


def test_an_assignment_and_a_sum_and_an_array_are_found_around_a_parameter() -> None:
    found = placeholder("UPDATE t SET a = $1 WHERE b = 5")
    assert number_of(found) == 1
    left = assigned(found.find_ancestor(exp.EQ))
    assert left is not None
    assert left.sql() == "a"
    summed = without_sums(placeholder("SELECT * FROM t WHERE b = (c + $1) - 1"))
    assert summed.sql(dialect="postgres").count("+") == 1
    assert isinstance(summed.parent, exp.EQ)
    operand = array_operand(placeholder("SELECT * FROM t WHERE a = ANY (ARRAY[$1, 5])"))
    assert operand is not None
    assert operand.sql() == "a"
    assert array_operand(placeholder("SELECT * FROM t WHERE a = $1")) is None
