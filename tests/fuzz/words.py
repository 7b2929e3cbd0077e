"""Errors that a reader may raise: those of pgdyno, with a text for people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgdyno.base.errors import PgdynoError


@contextmanager
def refused_in_words() -> Iterator[None]:
    """Let pass what is refused with a message; every other exception is a mistake of the reader."""
    try:
        yield
    except PgdynoError as error:
        assert error.message.strip()
        assert str(error).startswith(error.message)
