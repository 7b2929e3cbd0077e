"""Failed transactions in words, and the limit of their share."""

from __future__ import annotations

import re

import psycopg.errors
import pytest

from pgdyno.base.errors import GeneratorFailedError
from pgdyno.model.experiments.failures import Failures, added_up, failed_share, failures_text, require_few


def plain(text: str | None) -> str:
    return (text or "").replace("\N{NO-BREAK SPACE}", " ")


def test_reasons_are_added_up_the_most_frequent_first() -> None:
    found = added_up([Failures("40001", 2), Failures("23505", 1, "pay"), Failures("23505", 4, "pay")])
    assert found == (Failures("23505", 5, "pay"), Failures("40001", 2))
    assert failures_text(found) == (
        "5 of SQLSTATE 23505 (unique_violation) in pay, 2 of SQLSTATE 40001 (serialization_failure)"
    )


def test_of_many_reasons_the_first_are_named() -> None:
    many = [Failures("23505", 10 - number, f"q{number}") for number in range(6)]
    assert failures_text(many).endswith("7 of SQLSTATE 23505 (unique_violation) in q3, and 2 other reasons")


def test_the_share_is_of_all_that_ended() -> None:
    assert failed_share(75, [Failures("40001", 20), Failures("40P01", 5)]) == 0.25
    assert failed_share(0, []) == 0.0


def test_five_of_a_hundred_may_fail() -> None:
    require_few("plan", 95, [Failures("40001", 5)])
    with pytest.raises(GeneratorFailedError) as caught:
        require_few("plan", 94, [Failures("40001", 6)])
    error = caught.value
    assert plain(error.message) == "6 % of the transactions failed on the server of plan"
    assert plain(error.detail) == "6 of SQLSTATE 40001 (serialization_failure); at most 5 % may fail"
    assert error.hint == f"the server's log shows the errors: {FIX}"


FIX = "fix the script, or the statements' parameters in the workload's file"
WITH_NAMES = (
    'duplicate key value violates unique constraint "users_email"',
    'insert or update on table "lines" violates foreign key constraint "lines_order_fkey"',
    'update or delete on table "a" violates RESTRICT setting of foreign key constraint "f" on table "b"',
    'null value in column "total" of relation "orders" violates not-null constraint',
    'new row for relation "accounts" violates check constraint "no debt"',
    'new row violates row-level security policy for table "notes"',
    "permission denied for materialized view totals",
)
WITH_VALUES = (
    'invalid input syntax for type integer: "ann@example.org"',
    'malformed array literal: "{secret}"',
    'order 17 violates unique constraint "of the shop"',  # of RAISE
    'relation "ann" does not exist',
)


def failed(log: str) -> GeneratorFailedError:
    """Return the error of a server on which everything failed."""
    with pytest.raises(GeneratorFailedError) as caught:
        require_few("plan", 0, [Failures("23505", 1)], log)
    return caught.value


def test_errors_in_the_log_are_shown_once_and_without_values_of_rows() -> None:
    lines = [f"2026-11-30 12:00:00 UTC [7] ERROR:  {one}" for one in (*WITH_NAMES, *WITH_VALUES) * 2]
    more = "DETAIL:  Key (email)=(ann@example.org) already exists.", "STATEMENT:  INSERT …", "LOG:  end"
    error = failed("\n         ".join((*lines, *more)))
    reason = "1 of SQLSTATE 23505 (unique_violation); at most 5 % may fail"
    assert plain(error.detail).split("\n         ") == [reason, *WITH_NAMES]
    assert error.hint == FIX


def test_without_errors_in_it_the_hint_names_the_log() -> None:
    for log in ("", "see the server's log", "LOG:  ready"):
        assert failed(log).hint == f"the server's log shows the errors: {FIX}"
    assert failed('ERROR:  invalid input syntax for type integer: "ann"').hint == FIX


def test_errors_have_postgresql_s_names() -> None:
    known = {
        one.sqlstate: re.sub(r"(?<!^)(?=[A-Z])", "_", one.__name__).lower().rstrip("_")
        for one in vars(psycopg.errors).values()
        if isinstance(one, type) and issubclass(one, psycopg.Error) and one.sqlstate
    }
    shown = {code: Failures(code, 1).error for code in known}
    named = {code: error for code, error in shown.items() if error != code}
    assert named == {code: f"{code} ({known[code]})" for code in named}
    assert len(named) > 40
    assert Failures("PGDYN", 1).error == "PGDYN"  # of RAISE
