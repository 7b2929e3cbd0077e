from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from pgdyno.stats.robustness import signed_rank_p_value


def test_the_p_value_is_that_of_wilcox_test() -> None:
    """R 4.2.2: wilcox.test(x)$p.value."""
    x = np.array([0.031, 0.018, -0.004, 0.027, 0.012, 0.038, -0.009, 0.021, 0.016, 0.007])
    assert signed_rank_p_value(x) == pytest.approx(0.013671875)


@settings(max_examples=30)
@given(st.lists(st.integers(-10, 10), min_size=1, max_size=60).filter(any))
def test_it_is_scipys_with_ties_and_rounds_without_change(x: list[int]) -> None:
    expected = float(stats.wilcoxon(x).pvalue)
    assert signed_rank_p_value(np.array(x, dtype=float)) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=30)
@given(st.sets(st.integers(1, 1000), min_size=1, max_size=60), st.data())
def test_it_is_scipys_without_ties(sizes: set[int], data: st.DataObject) -> None:
    x = [data.draw(st.sampled_from((-size, size))) for size in sizes]
    expected = float(stats.wilcoxon(x).pvalue)
    assert signed_rank_p_value(np.array(x, dtype=float)) == pytest.approx(expected, rel=1e-9)
