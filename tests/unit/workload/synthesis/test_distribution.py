"""Values in their order: as many, as frequent and as different as they are to be."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.workload.synthesis.distribution import Distribution, Shape, distribute

_COMMON = st.lists(st.tuples(st.integers(-50, 150), st.floats(0.001, 0.2)), max_size=5)
_BOUNDS = st.lists(st.integers(-1000, 1000), min_size=2, max_size=20).map(sorted)
_SHAPES = st.builds(Shape, _COMMON, _BOUNDS, st.floats(1, 3000))


def values_of(made: Distribution) -> list[int]:
    return [int(one) for one in made.at(made.places(np.arange(made.rows))).tolist()]


@given(shape=_SHAPES, rows=st.integers(0, 3000))
def test_all_rows_have_values_in_order(shape: Shape, rows: int) -> None:
    made = distribute(shape, rows)
    assert made.rows == rows
    values = values_of(made)
    assert values == sorted(values)


@given(shape=_SHAPES, rows=st.integers(1, 3000))
def test_ordinals_and_repeats_count_the_rows_of_each_value(shape: Shape, rows: int) -> None:
    made = distribute(shape, rows)
    places = made.places(np.arange(rows))
    counts = np.bincount(places.ordinal, minlength=made.values)
    assert counts.min() >= 1
    assert np.array_equal(counts[places.ordinal], places.repeats)
    assert all(0 <= repeat < of for repeat, of in zip(places.repeat, places.repeats, strict=True))
    first = made.ranks_of_ordinals(np.arange(made.values))
    assert np.array_equal(made.places(first).ordinal, np.arange(made.values))


@given(bounds=_BOUNDS, rows=st.integers(1, 3000))
def test_unique_values_are_different(bounds: list[int], rows: int) -> None:
    values = values_of(distribute(Shape((), bounds, None), rows))
    assert len(set(values)) == rows


def test_common_values_are_as_frequent_and_the_rest_lies_between_bounds() -> None:
    made = distribute(Shape([(5, 0.2), (70, 0.1)], [0, 10, 50, 100], 30), 1000)
    values = np.array(values_of(made))
    assert [int(np.count_nonzero(values == one)) for one in (5, 70)] == [200, 100]
    # Each third of the other 700 rows lies between two bounds.
    others = values[(values != 5) & (values != 70)]
    assert [np.count_nonzero((others >= low) & (others < high)) for low, high in ((0, 10), (10, 50))] == [
        233, 234,
    ]  # fmt: skip
    assert (values.min() >= 0, values.max() <= 100, abs(len(set(values.tolist())) - 30) <= 2) == (
        True, True, True,
    )  # fmt: skip


def test_no_value_has_more_rows_than_it_may() -> None:
    made = distribute(Shape([(1, 0.5)], [2, 300], 10), 1000, most_repeats=20)
    places = made.places(np.arange(1000))
    assert made.rows == 1000
    assert int(np.bincount(places.ordinal).max()) <= 20


def test_the_rank_of_a_value_is_where_it_lies() -> None:
    made = distribute(Shape([(50, 0.5)], [0, 100], 51), 1000)
    assert made.ranks_of(50) == range(250, 750)
    assert (made.rank_of(-10), made.rank_of(1000)) == (0, 999)
