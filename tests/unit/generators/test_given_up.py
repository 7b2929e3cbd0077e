"""Transactions that were given up, as the driver counts them."""

from __future__ import annotations

from contextlib import nullcontext as does_not_raise
from typing import Any

import pytest

from pgdyno.generators.given_up import errors_of, errors_text, require_few
from pgdyno.model.errors import GeneratorFailedError


def arm(transactions: int, *errors: dict[str, int]) -> dict[str, Any]:
    return {
        "name": "plan",
        "roles": [{"transactions": transactions, "errors": one} for one in errors],
    }


def test_errors_of_all_roles_are_added_up() -> None:
    errors = errors_of(arm(1, {"23505": 2, "40P01": 1}, {"23505": 3}))
    assert errors == {"23505": 5, "40P01": 1}
    assert errors_text(errors) == "5 of SQLSTATE 23505, 1 of SQLSTATE 40P01"


def test_a_tenth_of_the_transactions_may_fail() -> None:
    with does_not_raise():
        require_few({"arms": [arm(90, {"23505": 10}), arm(0, {})]})


def test_where_more_fail_nothing_is_measured() -> None:
    with pytest.raises(GeneratorFailedError) as caught:
        require_few({"arms": [arm(100, {}), arm(80, {"23505": 20})]})
    error = caught.value
    assert error.message.replace("\N{NO-BREAK SPACE}", " ") == (
        "20 % of the transactions failed on the server of plan"
    )
    assert (error.detail or "").replace("\N{NO-BREAK SPACE}", " ") == "20 of SQLSTATE 23505; at most 10 % may"
    assert "mend its parameters in the workload's file" in (error.hint or "")
