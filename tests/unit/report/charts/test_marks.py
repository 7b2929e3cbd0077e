"""Labels: shortened in the middle, pushed apart."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pgdyno.report.charts.marks import fitted, spread


def test_text_that_fits_is_left_alone() -> None:
    assert fitted("default", 200) == "default"


def test_long_text_loses_its_middle_because_names_differ_at_their_ends() -> None:
    shown = fitted("sysbench-read-only-with-a-long-name", 100)
    assert shown.startswith("sysben")
    assert shown.endswith("-name")
    assert len(shown) == 13


def test_labels_that_do_not_touch_stay_where_they_are() -> None:
    assert spread([10, 50, 90], 15, 0, 100) == [10, 50, 90]


def test_labels_at_one_place_are_pushed_apart_in_their_order() -> None:
    assert spread([50, 50], 15, 0, 100) == [50, 65]


def test_labels_at_the_bottom_are_pushed_up() -> None:
    assert spread([98, 99], 15, 0, 100) == [85, 100]


@given(st.lists(st.floats(min_value=-20, max_value=220), max_size=8))
def test_labels_never_overlap_and_never_leave(places: list[float]) -> None:
    result = spread(places, 14, 0, 200)
    assert all(b - a >= 14 - 1e-6 for a, b in pairwise(sorted(result)))
    assert all(-1e-6 <= place <= 200 + 1e-6 for place in result)


@given(st.lists(st.floats(min_value=0, max_value=100), min_size=20, max_size=40))
def test_more_labels_than_there_is_room_for_share_the_room(places: list[float]) -> None:
    result = spread(places, 14, 0, 100)
    assert all(-1e-6 <= place <= 100 + 1e-6 for place in result)
    assert len(result) == len(places)


@given(st.text(max_size=60), st.floats(min_value=0, max_value=400))
def test_fitted_text_is_never_longer_than_its_room_allows(content: str, room_px: float) -> None:
    assert len(fitted(content, room_px)) <= max(3, room_px / (13 * 0.56))
