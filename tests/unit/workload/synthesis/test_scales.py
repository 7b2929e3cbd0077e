"""Values of types as numbers, and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.workload.synthesis.scales import scale_of

_NUMERIC_10_2 = ((10 << 16) | 2) + 4  # as pg_attribute.atttypmod has it


@pytest.mark.parametrize(
    ("type_", "modifier", "text", "again"),
    [
        ("int4", -1, "-42", "-42"),
        ("int8", -1, "1234567890123456789", "1234567890123456789"),
        ("numeric", _NUMERIC_10_2, "-12.34", "-12.34"),
        ("numeric", _NUMERIC_10_2, "0.05", "0.05"),
        ("date", -1, "2024-02-29", "2024-02-29"),
        ("date", -1, "1815-12-10", "1815-12-10"),
        ("timestamp", -1, "2024-02-29 12:30:00.5", "2024-02-29T12:30:00.500000"),
        ("timestamptz", -1, "2024-02-29 12:30:00+00", "2024-02-29T12:30:00.000000+00"),
        ("time", -1, "23:59:59.25", "23:59:59.250000"),
        ("interval", -1, "P1DT2H30M1.5S", "95401500000 microseconds"),
        ("bool", -1, "t", "t"),
    ],
)
def test_values_come_back_as_postgresql_reads_them(type_: str, modifier: int, text: str, again: str) -> None:
    scale = scale_of(type_, (), (), modifier)
    assert scale is not None
    value = scale.parse(text)
    assert value is not None
    assert scale.render(np.array([value])) == [again]


@pytest.mark.parametrize(
    ("type_", "first", "second"),
    [
        ("int4range", "[1,2)", "[2,3)"),
        ("numrange", "[1,2)", "[2,3)"),
        ("daterange", "[2020-01-01,2020-01-02)", "[2020-01-02,2020-01-03)"),
        ("datemultirange", "{[2020-01-01,2020-01-02)}", "{[2020-01-02,2020-01-03)}"),
        (
            "tsrange",
            "[2020-01-01T00:00:00.000000,2020-01-01T01:00:00.000000)",
            "[2020-01-01T01:00:00.000000,2020-01-01T02:00:00.000000)",
        ),
        (
            "tstzrange",
            "[2020-01-01T00:00:00.000000+00,2020-01-01T01:00:00.000000+00)",
            "[2020-01-01T01:00:00.000000+00,2020-01-01T02:00:00.000000+00)",
        ),
    ],
)
def test_ranges_begin_where_the_one_before_ends(type_: str, first: str, second: str) -> None:
    scale = scale_of(type_, (), (), -1)
    assert scale is not None
    low = int(scale.usual[0])
    assert scale.render(np.array([low, low + 1])) == [first, second]
    assert scale.parse(first) is None  # statistics have no ranges


def test_labels_are_in_the_order_of_their_type() -> None:
    scale = scale_of("mood", ("sad", "ok", "happy"), (), -1)
    assert scale is not None
    assert [scale.parse(one) for one in ("sad", "happy", "angry")] == [0, 2, None]
    assert scale.render(np.array([1, 0])) == ["ok", "sad"]


@pytest.mark.parametrize("text", ["infinity", "-infinity", "0044-03-15 BC", "", "x", "9" * 40])
@pytest.mark.parametrize("type_", ["int4", "date", "timestamptz", "time", "interval"])
def test_values_without_a_place_have_none(type_: str, text: str) -> None:
    scale = scale_of(type_, (), (), -1)
    assert scale is not None
    assert scale.parse(text) is None


@given(
    text=st.text(max_size=30),
    type_=st.sampled_from(["int8", "numeric", "float8", "date", "interval", "time"]),
)
def test_any_text_is_a_number_or_none(text: str, type_: str) -> None:
    scale = scale_of(type_, (), (), -1)
    assert scale is not None
    value = scale.parse(text)
    assert value is None or abs(value) < float("inf")


def test_types_without_a_scale_have_none() -> None:
    assert scale_of("text", (), (), -1) is None
