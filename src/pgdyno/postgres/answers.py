"""Answers of a server that are not of the form that PostgreSQL gives them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgdyno.base.errors import ServerError

_SHOWN_CHARACTERS = 200  # arbitrary
_OF_FORM = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
"""What reading raises that meets NULL, another type, or fewer rows or columns than were asked for."""


@contextmanager
def answers_of_postgresql() -> Iterator[None]:
    """Read a server's answers, which have the form that PostgreSQL's manual says.

    Raises: ServerError where they have another one.
    """
    try:
        yield
    except _OF_FORM as error:
        raise ServerError(
            "the server does not answer as PostgreSQL does",
            detail=f"{type(error).__name__}: {str(error)[:_SHOWN_CHARACTERS]!a}",
            hint="connect to the server itself if there is a proxy between",
        ) from error
