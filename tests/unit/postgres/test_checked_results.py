"""Results that do not have PostgreSQL's form are the server's fault, and shown without control characters."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import ServerError
from pgdyno.postgres.checked_results import checked_results


@pytest.mark.parametrize(
    ("raised", "detail"),
    [
        (ValueError("a\x1b[2Jb"), r"ValueError: 'a\x1b[2Jb'"),
        (TypeError("int() of NoneType"), "TypeError: 'int() of NoneType'"),
        (IndexError("x" * 300), f"IndexError: '{'x' * 200}'"),
        (ZeroDivisionError("division by zero"), "ZeroDivisionError: 'division by zero'"),
    ],
)
def test_faults_of_reading_are_faults_of_the_server(raised: Exception, detail: str) -> None:
    with pytest.raises(ServerError) as caught, checked_results():
        raise raised
    assert caught.value.message == "the server does not respond as PostgreSQL does"
    assert caught.value.detail == detail
    assert caught.value.hint == "connect to the server directly if there is a proxy in between"


def test_other_errors_pass() -> None:
    with pytest.raises(OSError, match="disk"), checked_results():
        raise OSError("disk")
