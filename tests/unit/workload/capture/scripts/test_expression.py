"""Expressions of pgbench's set command. Expected values are those that pgbench 15 printed."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.model.experiments.captured import Between
from pgdyno.workload.capture.scripts.arithmetic import Drawn, ExpressionError, Value, text_of
from pgdyno.workload.capture.scripts.expression import evaluate


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("7.0 / 2", 3.5),
        ("greatest(1, 5, 3) - least(2, 4)", 3),
        ("- :a", -4),
        ("abs(-3) + int(2.9)", 6),
        ("int(2.5)", 2),
        ("int(3.5)", 4),
        ("int(7.7)", 8),
        ("10 / 2.0", 5.0),
        ("1 + ~ 2 + 3", -5),
        ("5 & 3 | 8 # 1", 8),
        ("1 << 3 + 1", 16),
        ("-9223372036854775808", -(1 << 63)),
        ("-9223372036854775808 % -1", 0),
        ("1 <> 2 AND NOT 2 >= 3", True),
        ("NULL IS NULL or 1 / 0 = 1", True),
        ("false and 1 / 0 = 1", False),
        ("NULL and true", None),
        ("NULL + 1", None),
        ("1 = 1.0", True),
        ("NULL isnull", True),
        ("5 notnull", True),
        ("true IS NOT false", True),
        ("case when 1 = 2 then 1 / 0 when 3 then 7 else 8 end", 7),
        ("CASE WHEN NULL THEN 1 END", None),
        ("mod(7, 4) + MOD(7.6, 5)", 6),
        ("pow(2, 10)", 1024.0),
        ("sqrt(2.25) + ln(exp(1))", 2.5),
        ("1e3", 1000.0),
        (".5", 0.5),
    ],
)
def test_arithmetic_is_pgbench_s(text: str, value: Value) -> None:
    found = evaluate(text, {"a": 4})
    assert found == value
    assert type(found) is type(value)


def test_a_square_root_of_a_negative_number_is_no_number() -> None:
    found = evaluate("sqrt(-1)", {})
    assert isinstance(found, float)
    assert math.isnan(found)


@pytest.mark.parametrize(
    ("value", "text"),
    [(5.0, "5"), (1.0, "1"), (0.1 + 0.2, "0.3"), (1e20, "1e+20"), (True, "true"), (-3, "-3"), (None, None)],
)
def test_values_are_sent_as_pgbench_writes_them(value: float | None, text: str | None) -> None:
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("text", "between", "plus"),
    [
        ("random(5, 5.6)", Between(5, 6), 0),
        ("3 + random(1, 9) - 1", Between(1, 9), 2),
        ("int(random(1, 9))", Between(1, 9), 0),
        ("random_gaussian(1, 9, 2.5)", Between(1, 9, "gaussian", 2.5), 0),
        ("random_exponential(1, 9, 3)", Between(1, 9, "exponential", 3.0), 0),
        ("random_zipfian(1, 9, 1.07)", Between(1, 9, "zipfian", 1.07), 0),
    ],
)
def test_random_numbers_have_their_distribution(text: str, between: Between, plus: int) -> None:
    found = evaluate(text, {})
    assert isinstance(found, Drawn)
    assert (found.source.between, found.plus) == (between, plus)


NOT_DRAWN = "of a random number, only a sum with an integer can be drawn"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1 / 0", "division by zero"),
        ("5 % 0", "division by zero"),
        ("", "it ends too early"),
        ("1 +", "it ends too early"),
        ("1 2", '"2" is not understood'),
        ("1 < 2 < 3", '"<" is not understood'),
        ("random(5, 1)", "no number is from 5 to 1"),
        ("random(-9223372036854775807, 9223372036854775807)",
         "the range from -9223372036854775807 to 9223372036854775807 is too large"),
        ("random_zipfian(1, 2)", "random_zipfian takes 3 arguments"),
        ("random_zipfian(1, 2, 1)", "random_zipfian takes a parameter from 1.001 to 1000, not 1"),
        ("random_gaussian(1, 2, 1.0)", "random_gaussian takes a parameter from 2, not 1"),
        ("random_exponential(1, 2, 0)", "random_exponential takes a parameter greater than 0, not 0"),
        ("greatest()", "greatest takes at least 1 arguments"),
        ("hash(5)", "hash cannot be drawn"),
        ("nothing(5)", '"nothing" is no function of pgbench'),
        (":b", ":b is not set before"),
        (":client_id", ":client_id differs from client to client, and a workload has one value for all"),
        ("random(1, 5) * 2", NOT_DRAWN),
        ("- random(1, 5)", NOT_DRAWN),
        ("random(1, 5) + 0.5", NOT_DRAWN),
        ("random(1, 5) is null", NOT_DRAWN),
        ("case when random(1, 2) then 1 end", NOT_DRAWN),
        ("9223372036854775807 + 1", "+: the result is out of bigint's range"),
        ("9223372036854775808", "a constant: the result is out of bigint's range"),
        ("random(1, 5) + 9223372036854775807", "+: the result is out of bigint's range"),
        ("-9223372036854775808 / -1", "/: the result is out of bigint's range"),
        ("int(1E32)", "int: the result is out of bigint's range"),
        ("1.0E309", "a double constant is out of range"),
        ("true + 1", "a boolean is no integer"),
        ("1 and true", "a number is no boolean"),
        ("1 is 1", "IS takes NULL, TRUE or FALSE"),
        ("case end", "CASE has no WHEN"),
        ("(" * 100_000, "it is nested too deeply"),
    ],
)  # fmt: skip
def test_what_has_no_value_or_cannot_be_drawn_is_refused(text: str, why: str) -> None:
    with pytest.raises(ExpressionError) as found:
        evaluate(text, {})
    assert str(found.value) == why


@given(st.text(alphabet="0123456789.e+-*/%(),: abrndom_<>=~!&|#", max_size=40))
def test_no_expression_breaks_the_parser(text: str) -> None:
    try:
        value = evaluate(text, {"a": 1})
    except ExpressionError:
        return
    assert isinstance(value, int | float | Drawn | None)
