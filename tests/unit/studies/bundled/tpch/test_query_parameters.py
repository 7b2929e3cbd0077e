"""Values of queries: the ranges of the specification's clauses 2.4.1.3 to 2.4.22.3, over many draws."""

from __future__ import annotations

import re

import pytest

from pgdyno.studies.bundled.tpch.queries import NUMBERS, template, validation_parameters
from pgdyno.studies.bundled.tpch.query_parameters import COLORS, NATIONS, draw_parameters

DRAWS = [draw_parameters((7, draw), 100) for draw in range(400)]
BRAND = re.compile("Brand#[1-5][1-5]")


def drawn(number: int, name: str) -> set[str]:
    return {draw[number][name] for draw in DRAWS}


def test_every_query_gets_exactly_the_values_that_it_names() -> None:
    for number in NUMBERS:
        named = set(re.findall(r":'?([a-z]\w*)", template(number)))
        assert DRAWS[0][number].keys() == named
        assert validation_parameters(number, 100).keys() == named


def test_equal_seeds_give_equal_values_and_others_do_not() -> None:
    assert draw_parameters((1, 2, 3), 100) == draw_parameters((1, 2, 3), 100)
    assert draw_parameters((1, 2, 3), 100) != draw_parameters((1, 2, 4), 100)


@pytest.mark.parametrize(
    ("number", "name", "low", "high"),
    [
        (1, "delta", 60, 120),
        (2, "size", 1, 50),
        (6, "quantity", 24, 25),
        (18, "quantity", 312, 315),
        (19, "quantity1", 1, 10),
        (19, "quantity2", 10, 20),
        (19, "quantity3", 20, 30),
    ],
)
def test_numbers_reach_both_ends_of_their_range_and_no_further(
    number: int, name: str, low: int, high: int
) -> None:
    values = {int(value) for value in drawn(number, name)}
    assert (min(values), max(values)) == (low, high)


@pytest.mark.parametrize(
    ("number", "first", "last", "count"),
    [
        (3, "1995-03-01", "1995-03-31", 31),
        (4, "1993-01-01", "1997-10-01", 58),
        (5, "1993-01-01", "1997-01-01", 5),
        (6, "1993-01-01", "1997-01-01", 5),
        (10, "1993-02-01", "1995-01-01", 24),
        (12, "1993-01-01", "1997-01-01", 5),
        (14, "1993-01-01", "1997-12-01", 60),
        (15, "1993-01-01", "1997-10-01", 58),
        (20, "1993-01-01", "1997-01-01", 5),
    ],
)
def test_dates_are_those_of_the_clause(number: int, first: str, last: str, count: int) -> None:
    dates = drawn(number, "date")
    assert (min(dates), max(dates), len(dates)) == (first, last, count)


@pytest.mark.parametrize(
    ("number", "names"),
    [
        (7, ["nation1", "nation2"]),
        (12, ["shipmode1", "shipmode2"]),
        (16, [f"size{i}" for i in range(1, 9)]),
        (22, [f"code{i}" for i in range(1, 8)]),
    ],
)
def test_values_that_have_to_differ_do(number: int, names: list[str]) -> None:
    assert all(len({draw[number][name] for name in names}) == len(names) for draw in DRAWS)


@pytest.mark.parametrize(("number", "name"), [(16, "brand"), (17, "brand"), (19, "brand1"), (19, "brand3")])
def test_brands_have_two_digits_from_1_to_5(number: int, name: str) -> None:
    brands = drawn(number, name)
    assert len(brands) == 25
    assert all(BRAND.fullmatch(brand) for brand in brands)


def test_the_region_of_q8_is_its_nations() -> None:
    assert all(NATIONS[draw[8]["nation"]] == draw[8]["region"] for draw in DRAWS)


def test_discounts_are_from_2_to_9_percent() -> None:
    assert drawn(6, "discount") == {f"0.0{percent}" for percent in range(2, 10)}


def test_country_codes_are_those_of_the_25_nations() -> None:
    codes = {draw[22][f"code{i}"] for draw in DRAWS for i in range(1, 8)}
    assert codes == {str(code) for code in range(10, 35)}


def test_colors_and_nations_are_as_many_as_the_specification_has() -> None:
    assert (len(COLORS), len(set(COLORS)), len(NATIONS)) == (92, 92, 25)
    assert drawn(9, "color") <= {*COLORS}


@pytest.mark.parametrize(("thousandths", "fraction"), [(1000, 0.0001), (100, 0.001), (10, 0.01)])
def test_the_fraction_of_q11_falls_with_the_scale(thousandths: int, fraction: float) -> None:
    assert float(draw_parameters((1,), thousandths)[11]["fraction"]) == fraction
    assert float(validation_parameters(11, thousandths)["fraction"]) == fraction
