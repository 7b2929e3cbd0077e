"""Durations and percentages on a command line: errors name the option."""

from __future__ import annotations

import click
import pytest

from pgdyno.base.errors import UsageError
from pgdyno.cli.quantities import duration, percent

CONTEXT = click.Context(click.Command("x"))


def test_values_are_seconds_and_fractions() -> None:
    option = click.Option(["--budget"])
    assert duration(CONTEXT, option, "8m") == 480.0
    assert percent(CONTEXT, option, "2%") == 0.02
    assert duration(CONTEXT, option, None) is None
    assert percent(CONTEXT, option, None) is None


def test_an_error_begins_with_the_option() -> None:
    with pytest.raises(UsageError, match=r"^--budget .*soon"):
        duration(CONTEXT, click.Option(["--budget"]), "soon")
    with pytest.raises(UsageError, match=r"^--min-gain .*much"):
        percent(CONTEXT, click.Option(["--min-gain"]), "much")
