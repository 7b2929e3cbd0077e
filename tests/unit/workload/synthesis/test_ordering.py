"""The order of values in a table: a permutation, with the correlation that is wanted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.workload.synthesis.ordering import Ordering, kept_share, shuffled


@given(rows=st.integers(0, 25_000), kept=st.floats(-1, 1), seed=st.integers(0, 1 << 32))
def test_an_ordering_is_a_permutation(rows: int, kept: float, seed: int) -> None:
    ranks = Ordering(rows, kept, seed).ranks(np.arange(rows))
    assert np.array_equal(np.sort(ranks), np.arange(rows))


@given(rows=st.integers(2, 25_000), first=st.integers(0, 100), seed=st.integers(0, 1 << 32))
def test_blocks_are_parts_of_the_whole(rows: int, first: int, seed: int) -> None:
    ordering, first = Ordering(rows, 0.3, seed), min(first, rows - 1)
    assert np.array_equal(ordering.ranks(np.arange(first, rows)), ordering.ranks(np.arange(rows))[first:])


@pytest.mark.parametrize("kept", [1.0, 0.7, 0.2, 0.0, -0.5, -1.0])
def test_the_correlation_is_the_share_that_is_kept(kept: float) -> None:
    rows = 50_000
    ranks = Ordering(rows, kept, 3).ranks(np.arange(rows))
    assert np.corrcoef(ranks, np.arange(rows))[0, 1] == pytest.approx(kept, abs=0.02)


@given(size=st.integers(1, 5000), seed=st.integers(0, 1 << 32))
def test_values_are_shuffled_within_their_size(size: int, seed: int) -> None:
    assert np.array_equal(np.sort(shuffled(np.arange(size), size, seed)), np.arange(size))


@pytest.mark.parametrize("wanted", [1.0, 0.8, 0.5, -0.3, -0.6])
def test_equal_values_are_sorted_by_position_as_analyze_does(wanted: float) -> None:
    """Ten values, which ANALYZE sorts by value and then by position."""
    rows = 20_000
    kept = kept_share(wanted, 10 * 0.1**2, 10 * 0.1**3)
    values = Ordering(rows, kept, 5).ranks(np.arange(rows)) * 10 // rows
    in_order = np.argsort(values, kind="stable")
    assert np.corrcoef(in_order, np.arange(rows))[0, 1] == pytest.approx(wanted, abs=0.03)
