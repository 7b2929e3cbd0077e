"""A knee in words: one level, a range, or open towards the top."""

from __future__ import annotations

import pytest

from pgdyno.model.experiments.scaling import Knee


@pytest.mark.parametrize(
    ("low", "high", "text"), [(4, 4, "4"), (4, 6, "between 4 and 6"), (4, None, "4 or more")]
)
def test_a_knee_is_as_narrow_as_the_data_show(low: int, high: int | None, text: str) -> None:
    assert str(Knee(low, high, 0.05)) == text
