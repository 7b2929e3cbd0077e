"""Errors: how they are printed, and that codes and exit codes stay what scripts rely on."""

from __future__ import annotations

import re

import pytest

from pgdyno.base import errors
from pgdyno.base.errors import (
    InterruptedByUserError,
    LoadHostLostError,
    MemoryProofError,
    PgdynoError,
    RefusedError,
    UnforeseenError,
    UsageError,
    as_pgdyno_error,
)


def _all(of: type[PgdynoError] = PgdynoError) -> list[type[PgdynoError]]:
    return [of, *(one for child in of.__subclasses__() for one in _all(child))]


def test_message_detail_and_hint_are_lines_as_postgresql_prints_them() -> None:
    assert str(PgdynoError("a")) == "a"
    assert str(PgdynoError("a", hint="c")) == "a\nHINT:  c"
    assert str(PgdynoError("a", detail="b", hint="c")) == "a\nDETAIL:  b\nHINT:  c"


def test_every_code_is_used_once_and_listed_with_its_name() -> None:
    kinds = [one for one in _all() if one.__module__ == errors.__name__]
    assert len({one.code for one in kinds}) == len(kinds)
    listed = dict(re.findall(r"(\w+Error) +(PGD-\d{3})", str(errors.__doc__)))
    missing = {one.__name__: one.code for one in kinds}.items() - listed.items()
    assert not missing, "the table at the top of errors.py lacks these"


@pytest.mark.parametrize(
    ("kind", "exit_code"),
    [(PgdynoError, 1), (UsageError, 2), (RefusedError, 4), (InterruptedByUserError, 130)],
)
def test_kinds_of_errors_have_their_exit_code(kind: type[PgdynoError], exit_code: int) -> None:
    assert {one.exit_code for one in _all(kind)} == {exit_code} or kind is PgdynoError
    assert kind.exit_code == exit_code


def test_errors_with_more_to_them_keep_it() -> None:
    assert MemoryProofError("too large", connections=40).connections == 40
    assert LoadHostLostError("lost", host="b").host == "b"


def test_any_error_becomes_one_with_a_code() -> None:
    known = UsageError("x")
    assert as_pgdyno_error(known) is known
    assert isinstance(as_pgdyno_error(KeyboardInterrupt()), InterruptedByUserError)
    other = as_pgdyno_error(ValueError("bad"))
    assert (type(other), other.message) == (UnforeseenError, "unforeseen ValueError: bad")
