"""Axes: ticks at round values that do not collide, and values held inside."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.report.charts.scales import LinearScale, RatioScale, ratio_scale, round_values, value_scale

NBSP = "\N{NO-BREAK SPACE}"
ratios = st.floats(min_value=0.01, max_value=50.0)
amounts = st.floats(min_value=1e-6, max_value=1e9)


@pytest.mark.parametrize(
    ("low", "high", "count", "expected"),
    [
        (0, 10, 5, [0, 2, 4, 6, 8, 10]),
        (-15, 21, 8, [-15, -10, -5, 0, 5, 10, 15, 20]),
        (640, 1290, 5, [800, 1000, 1200]),
        (0.0, 0.03, 3, [0.0, 0.01, 0.02, 0.03]),
        (5, 5, 4, [5]),
    ],
)
def test_round_values_are_multiples_of_a_round_step(
    low: float, high: float, count: int, expected: list[float]
) -> None:
    assert round_values(low, high, count) == pytest.approx(expected)


def test_ratio_axis_is_labelled_in_percent_with_zero() -> None:
    scale = RatioScale(0.9, 1.25, 0, 500)
    labels = [tick.label.replace(NBSP, " ") for tick in scale.ticks(46)]
    assert labels == ["−10 %", "−5 %", "0 %", "+5 %", "+10 %", "+15 %", "+20 %", "+25 %"]


def test_wide_ratio_axis_has_ticks_on_both_sides_of_zero() -> None:
    # 100 px per factor e: −30 % (36 px) and +50 % (41 px) are too near to zero, +200 % (41 px) to +100 %.
    labels = [tick.label.replace(NBSP, " ") for tick in RatioScale(0.2, 6.0, 0, 340).ticks(46)]
    assert labels == ["−50 %", "0 %", "+100 %", "+400 %"]


def test_halving_is_as_far_from_no_change_as_doubling() -> None:
    scale = RatioScale(0.25, 4.0, 0, 400)
    assert scale.place(1.0) == pytest.approx(200)
    assert scale.place(2.0) - 200 == pytest.approx(200 - scale.place(0.5)) == pytest.approx(100)


def test_pure_noise_is_not_magnified_to_fill_the_axis() -> None:
    scale = ratio_scale([0.9999, 1.0001], 0, 100)
    assert scale.low < 0.981
    assert scale.high > 1.019


def test_axis_of_far_away_amounts_does_not_start_at_zero() -> None:
    scale = value_scale([1400.0, 1800.0], 0, 100)
    assert 1000 <= scale.low <= 1400
    assert 1800 <= scale.high <= 2200


def test_axis_of_amounts_near_zero_starts_at_zero() -> None:
    assert value_scale([3.0, 100.0], 0, 100).low == 0


@pytest.mark.parametrize("values", [[], [0.0], [0.0, 0.0], [5.0], [5.0, 5.0], [-3.0, 2.0]])
def test_degenerate_amounts_still_give_an_axis(values: list[float]) -> None:
    scale = value_scale(values, 200, 10)
    assert scale.high > scale.low
    assert scale.ticks(30)


@given(st.lists(ratios, max_size=8), st.floats(min_value=120, max_value=900))
def test_ratio_ticks_never_collide_and_always_hold_zero(values: list[float], width: float) -> None:
    scale = ratio_scale(values, 0, width)
    ticks = scale.ticks(46)
    assert f"0{NBSP}%" in {tick.label for tick in ticks} or any(t.label.startswith("0.0") for t in ticks)
    assert all(b.place - a.place >= 46 - 1e-6 for a, b in pairwise(ticks))
    assert len({tick.label for tick in ticks}) == len(ticks)


@given(st.lists(amounts, min_size=1, max_size=8))
def test_amounts_lie_inside_their_axis(values: list[float]) -> None:
    scale = value_scale(values, 200, 10)
    assert scale.low <= min(values)
    assert scale.high >= max(values)
    places = [scale.place(value) for value in values]
    assert all(10 - 1e-6 <= place <= 200 + 1e-6 for place in places)


@given(ratios, st.lists(ratios, max_size=5))
def test_places_are_held_inside_the_axis(value: float, others: list[float]) -> None:
    scale = ratio_scale(others, 50, 450)
    assert 50 - 1e-6 <= scale.place(value) <= 450 + 1e-6


@given(st.floats(min_value=0, max_value=1e6), st.floats(min_value=1e-3, max_value=1e6))
def test_linear_ticks_lie_inside_and_are_told_apart(low: float, span: float) -> None:
    ticks = LinearScale(low, low + span, 300, 0).ticks(36)
    assert all(-1e-3 <= tick.place <= 300 + 1e-3 for tick in ticks)
    assert len({tick.label for tick in ticks}) == len(ticks)
