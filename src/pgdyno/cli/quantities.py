"""Options that take a duration or a share: read where they are given, in seconds and fractions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import click

from pgdyno.base.errors import UsageError
from pgdyno.base.units import parse_duration_s, parse_percent


def duration(_: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    """Return seconds; None if the option was not given. Raises: UsageError naming the option."""
    with _named(parameter):
        return None if text is None else parse_duration_s(text)


def percent(_: click.Context, parameter: click.Parameter, text: str | None) -> float | None:
    """Return a share; None if the option was not given. Raises: UsageError naming the option."""
    with _named(parameter):
        return None if text is None else parse_percent(text)


@contextmanager
def _named(parameter: click.Parameter) -> Iterator[None]:
    """Name the option in the error about its value."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{parameter.opts[0]} {error.message}", hint=error.hint) from error
