"""Numbers as text: expected texts written by hand, and properties that hold for all numbers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base import numbers
from pgdyno.model.experiments.metric import METRICS, Better, Metric
from pgdyno.model.experiments.verdict import Interval

NBSP = "\N{NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
ratios = st.floats(min_value=0.001, max_value=99.0)


def read_back(text: str) -> float:
    """Return the number in a text, by other means than those that made it."""
    kept = "".join(c for c in text if c in "0123456789.-+e" or c == MINUS)
    return float(kept.replace(MINUS, "-"))


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (1.192, "+19.2 %"),
        (0.861, "−13.9 %"),
        (1.0, "0.00 %"),
        (1.0000001, "0.00 %"),
        (0.9999999, "0.00 %"),
        (1.0021, "+0.21 %"),
        (2.5, "+150 %"),
        (40.0, "+3,900 %"),
        (0.0, "−100 %"),
        (250.0, "×250"),
        (2.5e9, "×2.5e+09"),
        (math.inf, "∞"),
        (math.nan, "not a number"),
    ],
)
def test_ratio_is_shown_as_a_signed_change(ratio: float, expected: str) -> None:
    assert numbers.change(ratio).replace(NBSP, " ") == expected


def test_interval_shows_both_ends_with_the_same_decimals_and_never_breaks() -> None:
    shown = numbers.interval(Interval(0.997, 1.05, 1.214, 0.95))
    assert shown == f"{MINUS}0.3{NBSP}%{NBSP}…{NBSP}+21.4{NBSP}%"


def test_effect_has_the_decimals_of_its_interval() -> None:
    assert numbers.change_within(1.0021, 0.98, 1.03) == f"+0.2{NBSP}%"
    assert numbers.change_within(1.0021, 1.001, 1.0029) == f"+0.21{NBSP}%"


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        (0.85, "85 %"),
        (0.95, "95 %"),
        (0.999, "99.9 %"),
        (0.025, "2.5 %"),
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.02, "2 %"),
    ],
)
def test_share_has_no_needless_decimals(part: float, expected: str) -> None:
    assert numbers.share(part).replace(NBSP, " ") == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (12345.6, "12,346"),
        (1234567.0, "1,234,567"),
        (999.4, "999"),
        (42.25, "42.2"),
        (4.056, "4.06"),
        (0.00712, "0.0071"),
        (0.0, "0"),
        (-1500.0, "−1,500"),
        (-0.00001, "−1.00e−05"),
        (1.5e18, "1.50e+18"),
    ],
)
def test_number_has_about_three_digits_and_commas(value: float, expected: str) -> None:
    assert numbers.number(value) == expected


@pytest.mark.parametrize(
    ("size_bytes", "expected"),
    [
        (2**30 - 1, "1 GB"),
        (0, "0 B"),
        (1023, "1,023 B"),
        (8192, "8 kB"),
        (134217728, "128 MB"),
        (2469606195, "2.3 GB"),
        (3 << 50, "3,072 TB"),
    ],
)
def test_size_is_shown_in_the_unit_that_suits_it(size_bytes: int, expected: str) -> None:
    assert numbers.size(size_bytes).replace(NBSP, " ") == expected


@pytest.mark.parametrize(
    ("duration_s", "expected"),
    [
        (0.0, "0 s"),
        (0.01, "10 ms"),
        (0.1, "100 ms"),
        (0.0000125, "0.0125 ms"),
        (6.0, "6 s"),
        (2.5, "2.5 s"),
        (59.96, "1 min"),
        (150.0, "2 min 30 s"),
        (3599.6, "1 h"),
        (3900.0, "1 h 5 min"),
        (90000.0, "25 h"),
    ],
)
def test_duration_is_shown_in_one_or_two_units(duration_s: float, expected: str) -> None:
    assert numbers.duration(duration_s).replace(NBSP, " ") == expected


def test_quantity_carries_its_unit() -> None:
    assert numbers.quantity(METRICS["throughput_tps"], 1471.3) == f"1,471{NBSP}transactions/s"
    assert numbers.quantity(METRICS["wal_bytes_per_transaction"], 9216.0) == f"9{NBSP}kB"
    assert numbers.quantity(METRICS["cache_hit_ratio"], 0.9942) == f"99.4{NBSP}%"
    assert numbers.quantity(Metric("odd", "odd", "", Better.NEITHER), 3.0) == "3.00"


def test_p_value_below_a_thousandth_is_not_spelled_out() -> None:
    assert numbers.p_value(0.00001) == "< 0.001"
    assert numbers.p_value(0.0312) == "0.031"


@given(ratios)
def test_change_reads_back_within_half_of_its_last_digit(ratio: float) -> None:
    shown = numbers.change(ratio)
    decimals = len(shown.split(NBSP, maxsplit=1)[0].partition(".")[2])
    assert abs(read_back(shown) - (ratio - 1) * 100) <= 0.5 * 10.0**-decimals + 1e-9


@given(ratios)
def test_change_has_a_sign_unless_it_rounds_to_zero(ratio: float) -> None:
    shown = numbers.change(ratio)
    assert (shown[0] in f"+{MINUS}") == (read_back(shown) != 0)


@given(ratios, ratios)
def test_range_keeps_the_order_of_its_ends(one: float, other: float) -> None:
    low, high = numbers.change_range(min(one, other), max(one, other)).split("…")
    assert read_back(low) <= read_back(high)


@given(st.floats(min_value=1e-3, max_value=1e14))
def test_number_is_within_a_percent_of_the_value(value: float) -> None:
    assert read_back(numbers.number(value)) == pytest.approx(value, rel=0.06 if value < 0.01 else 0.01)


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_any_float_becomes_a_short_text_without_ascii_minus(value: float) -> None:
    for shown in (
        numbers.number(value),
        numbers.plain(value),
        numbers.size(value),
        numbers.share(value),
        numbers.duration(value),
    ):
        assert 0 < len(shown) < 40 or abs(value) > 1e15
        assert "-" not in shown


@given(st.integers(min_value=0, max_value=1 << 60))
def test_size_is_within_a_percent_of_the_bytes(size_bytes: int) -> None:
    amount, unit = numbers.size(size_bytes).split(NBSP)
    power = ("B", "kB", "MB", "GB", "TB").index(unit)
    assert read_back(amount) * 1024**power == pytest.approx(size_bytes, rel=0.01)
