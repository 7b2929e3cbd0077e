"""Means of signed amounts; the expected intervals are worked out by hand."""

from __future__ import annotations

import pytest

from pgdyno.stats.mean_amount import mean_amount


def test_the_interval_is_students() -> None:
    """By hand: mean 3, standard deviation sqrt(2.5), t 2.776445 with four degrees of freedom."""
    found = mean_amount([3.0, 1.0, 5.0, 2.0, 4.0], 0.95)
    assert found.mean == pytest.approx(3.0)
    assert found.low == pytest.approx(3 - 2.776445 * (2.5 / 5) ** 0.5, rel=1e-6)
    assert found.high == pytest.approx(3 + 2.776445 * (2.5 / 5) ** 0.5, rel=1e-6)
    assert found.is_distinguishable


def test_an_interval_with_nothing_in_it_is_told() -> None:
    assert not mean_amount([3.0, -1.0, 5.0, -2.0, 1.0], 0.95).is_distinguishable
    assert mean_amount([-3.0, -3.1, -2.9, -3.05, -2.95], 0.95).is_distinguishable


def test_what_is_not_finite_is_refused() -> None:
    with pytest.raises(ValueError, match="not finite"):
        mean_amount([1.0, float("nan"), 2.0], 0.95)
