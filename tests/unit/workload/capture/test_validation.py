"""Mistakes in a workload that need no server to be seen."""

from __future__ import annotations

import pytest

from pgdyno.model.experiments.captured import (
    CapturedCall,
    CapturedStatement,
    CapturedTransaction,
    CapturedWorkload,
    Constant,
    Invariant,
    NoRows,
    Parameter,
    RangeEnd,
    ReturnedValue,
    SameValue,
)
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.validation import mistakes_of

SEEN = Seen(1, 1.0, 1, 1, 0)
STATEMENTS = (
    CapturedStatement("begin", "BEGIN", SEEN, is_prepared=False),
    CapturedStatement("one", "SELECT '$9', $1", SEEN),
    CapturedStatement("two", "SELECT $1, $2", SEEN),
)
ANY = Constant("x")


def mistakes(*calls: tuple[str, tuple[Parameter, ...]]) -> list[str]:
    made = tuple(CapturedCall(name, 1.0, parameters) for name, parameters in calls)
    whole = CapturedWorkload("w", "18", 1, "d", 1.0, 1, STATEMENTS, (CapturedTransaction(1.0, made),))
    return list(mistakes_of(whole))


def test_a_transaction_that_can_be_issued_has_none() -> None:
    tied = (SameValue(1, "one"), SameValue(1))
    assert mistakes(("begin", ()), ("one", (ANY,)), ("two", tied), ("one", (ReturnedValue(3, "two"),))) == []


@pytest.mark.parametrize(
    ("calls", "mistake"),
    [
        ([("three", ())], "three: unknown statement"),
        ([("two", (ANY,))], "two: requires 2 parameters, not 1"),
        ([("begin", (ANY,))], "begin: requires 0 parameters, not 1"),
        ([("one", (SameValue(1),))], "one: $1 repeats $1, which is not before it"),
        ([("one", (SameValue(1, "two"),))], "one: $1 repeats $1 of two, which no earlier call has"),
        ([("one", (RangeEnd(1, "s.t.c"),))], "one: $1 ends the range of $1, which is not before it"),
        (
            [("one", (ANY,)), ("two", (ANY, SameValue(2, "one")))],
            "two: $2 repeats $2 of one, which no earlier call has",
        ),
        ([("one", (ReturnedValue(1, "one"),))], "one: $1 is returned by one, which is not called before"),
    ],
)
def test_a_mistake_is_named_with_its_place(
    calls: list[tuple[str, tuple[Parameter, ...]]], mistake: str
) -> None:
    assert mistakes(*calls) == [f"transaction 1, {mistake}"]


@pytest.mark.parametrize(
    ("sql", "mistake"),
    [
        ("VACUUM t", "not a query"),
        ("DELETE FROM t RETURNING a", "DELETE is not allowed, an invariant must only read"),
        ("SELECT a FROM t WHERE b = $1", "parameters are not allowed in an invariant"),
    ],
)
def test_an_invariant_that_is_no_plain_query_is_named(sql: str, mistake: str) -> None:
    call = CapturedCall("begin", 1.0)
    invariants = (
        Invariant("kept", "WITH w AS (SELECT '$1' AS a) SELECT a FROM w", NoRows()),
        Invariant("i", sql, NoRows()),
    )
    whole = CapturedWorkload(
        "w", "18", 1, "d", 1.0, 1, STATEMENTS, (CapturedTransaction(1.0, (call,)),), invariants=invariants
    )
    assert list(mistakes_of(whole)) == [f'invariant "i": {mistake}']
