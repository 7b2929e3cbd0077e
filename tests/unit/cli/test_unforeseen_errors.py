"""What people read when an error arises that no code expects."""

from __future__ import annotations

import pytest

from pgdyno.cli.main import print_unexpected
from pgdyno.postgres.guc import normalise


def test_an_unforeseen_error_is_one_message_with_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        normalise(None, "kB")  # type: ignore[arg-type]
    except TypeError as error:
        print_unexpected(
            ValueError, ValueError("no number: \x1b]0;title\x07\n\u202eabc"), error.__traceback__
        )
    out, err = capsys.readouterr()
    assert out == ""
    first, *others = err.splitlines()
    steered = "\N{REPLACEMENT CHARACTER}"
    said = f"no number: {steered}]0;title{steered} {steered}abc"
    assert first == f"pgdyno: ERROR:  unforeseen ValueError: {said}  (PGD-900)"
    assert others[0].startswith("DETAIL:  raised in postgres/guc.py:")
    assert others[1].startswith("HINT:  this is a bug in pgdyno: please report it with these lines")
