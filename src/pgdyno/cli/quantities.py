"""Callbacks of options that take a duration or a percentage: convert to seconds and fractions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from pgdyno.base.errors import UsageError
from pgdyno.base.units import parse_duration_s, parse_percent


def duration(_: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    """Return the duration in seconds; None if not given. Raises: UsageError naming the option."""
    with _named(parameter):
        return None if text is None else parse_duration_s(text)


def percent(_: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    """Return the percentage as a fraction; None if not given. Raises: UsageError naming the option."""
    with _named(parameter):
        return None if text is None else parse_percent(text)


@contextmanager
def _named(parameter: click.Parameter) -> Iterator[None]:
    """Prefix the option's name to an error about its value."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{parameter.opts[0]} {error.message}", hint=error.hint) from error
