"""Query results that do not have PostgreSQL's documented form."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgdyno.base.errors import ServerError

_SHOWN_CHARACTERS = 200  # arbitrary
_MALFORMED = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
"""Raised by code that reads an unexpected NULL, another type, or fewer rows or columns than expected."""


@contextmanager
def checked_results() -> Iterator[None]:
    """Read query results in the block, relying on their documented form.

    Raises: ServerError if they have a different form.
    """
    try:
        yield
    except _MALFORMED as error:
        raise ServerError(
            "the server does not respond as PostgreSQL does",
            detail=f"{type(error).__name__}: {str(error)[:_SHOWN_CHARACTERS]!a}",
            hint="connect to the server directly if there is a proxy in between",
        ) from error
