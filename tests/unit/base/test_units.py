"""Durations and percentages on the command line."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.base.units import parse_duration_s, parse_percent


@pytest.mark.parametrize(
    ("text", "seconds"), [("8m", 480.0), ("90s", 90.0), ("100ms", 0.1), ("1.5h", 5400.0), ("2min", 120.0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "8", "m", "8 minutes", "-3s", "0s", "9" * 400 + "s", "\u0663s"])
def test_what_is_no_duration_is_named(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_duration_s(text)
    assert caught.value.message == f'"{text}" is not a duration'


def test_percentages() -> None:
    assert parse_percent("2.5%") == pytest.approx(0.025)
    with pytest.raises(UsageError, match='"5" is not a percentage'):
        parse_percent("5")
