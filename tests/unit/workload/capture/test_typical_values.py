"""Typical values of parameters; the bounds of the histograms are their places, counted from 0."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from pgdyno.base.facts import Unknown
from pgdyno.model.experiments.captured import (
    ArrayOf,
    Between,
    CapturedCall,
    CapturedStatement,
    CapturedTransaction,
    CapturedWorkload,
    ColumnValue,
    Constant,
    Letters,
    NewKey,
    OneOf,
    Parameter,
    RangeEnd,
    ReturnedValue,
    SameValue,
    Uuid,
)
from pgdyno.postgres.catalogued_tables import ColumnStatistics
from pgdyno.postgres.statement_counts import Seen
from pgdyno.workload.capture.typical_values import Value, typical_values

_SOME = ColumnStatistics(null_fraction=0, width_bytes=4, distinct=-1)
HIDDEN = Unknown("the server does not show it")
STATISTICS: dict[str, ColumnStatistics | Unknown] = {
    "s.t.places": replace(_SOME, bounds=tuple(map(str, range(101)))),
    "s.t.two": replace(_SOME, bounds=("3", "8"), common=("9",)),
    "s.t.common": replace(_SOME, common=("often", "less")),
    "s.t.nulls": replace(_SOME, null_fraction=1),
    "s.t.wide": _SOME,
    "s.t.hidden": HIDDEN,
    "s.t.last": replace(_SOME, bounds=(str(2**63 - 1),)),
}
PLACES = ColumnValue("s.t.places")


def values(*calls: tuple[str, tuple[Parameter, ...]]) -> dict[str, tuple[Value, ...]]:
    """Return values of the calls of one transaction."""
    made = tuple(CapturedCall(name, 1.0, parameters) for name, parameters in calls)
    return typical_values(workload(CapturedTransaction(1.0, made)), STATISTICS)


def workload(*transactions: CapturedTransaction) -> CapturedWorkload:
    statement = CapturedStatement("one", "SELECT $1", Seen(1, 1.0, 1, 1, 0))
    return CapturedWorkload("w", "18", 1, "d", 1.0, 1, (statement,), transactions)


def test_the_ends_of_a_range_are_spread_over_the_histogram() -> None:
    assert of_one(PLACES, RangeEnd(1, "s.t.places", rows=3)) == ("33", "66")


def of_one(*parameters: Parameter) -> tuple[Value, ...]:
    return values(("one", parameters))["one"]


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        (PLACES, "50"),
        (ColumnValue("s.t.two"), "3"),
        (ColumnValue("s.t.common"), "often"),
        (ColumnValue("s.t.nulls"), None),
        (ColumnValue("s.t.wide"), Unknown("no value of s.t.wide in the planner's statistics")),
        (ColumnValue("s.t.hidden"), HIDDEN),
        (ArrayOf("s.t.places", 1), '{"50"}'),
        (ArrayOf("s.t.places", 4), '{"20","40","60","80"}'),
        (ArrayOf("s.t.common", 3), '{"often","less","often"}'),
        (ArrayOf("s.t.nulls", 2), "{}"),
        (ArrayOf("s.t.hidden", 2), HIDDEN),
        (NewKey("s.t.places"), "101"),
        (NewKey("s.t.two"), "10"),
        (NewKey("s.t.last"), str(2**63 - 1)),
        (NewKey("s.t.common"), "often"),
        (NewKey("s.t.hidden"), HIDDEN),
        (Between(1, 100), "50"),
        (Between(-3, -1), "-2"),
        (Constant("it's"), "it's"),
        (Constant(None), None),
        (Letters(4, 8), "mmmmmm"),
        (OneOf(("a", "b")), "a"),
        (OneOf(("a", "b", "c"), (1.0, 3.0, 2.0)), "b"),
        (OneOf(("a", "b"), (1.0, 3.0), nulls=2.0), "b"),
        (OneOf(("a", "b"), (1.0, 3.0), nulls=4.0), None),
        (OneOf(("a",), nulls=2.0), None),
    ],
)
def test_each_kind_of_parameter_has_a_typical_value(parameter: Parameter, value: Value) -> None:
    assert of_one(parameter) == (value,)


def test_the_typical_uuid_is_one() -> None:
    (value,) = of_one(Uuid())
    assert isinstance(value, str)
    assert uuid.UUID(value).version == 4


def test_a_long_text_is_cut() -> None:
    (value,) = of_one(Letters(0, 10**12))
    assert isinstance(value, str)
    assert len(value) == 1000


def test_several_values_of_a_column_are_spread_over_its_histogram() -> None:
    assert of_one(PLACES, ColumnValue("s.t.common"), PLACES, PLACES) == ("25", "often", "50", "75")
    assert of_one(PLACES, ArrayOf("s.t.places", 2), PLACES) == ("20", '{"40","60"}', "80")


def test_same_values_are_those_of_earlier_parameters() -> None:
    found = values(
        ("one", (PLACES, ColumnValue("s.t.common"), SameValue(1, None, 7))),
        ("two", (SameValue(1, "one"), SameValue(2, "one", 7), SameValue(3, "one", -60), SameValue(4, "one"))),
        ("one", (Constant("5"), Constant("six"))),
        ("three", (SameValue(1, "one", 1), SameValue(2, "one"))),
    )
    assert found["two"] == ("50", "often", "-3", Unknown("no earlier call has it"))
    assert found["three"] == ("6", "six")


def test_returned_values_whose_column_is_not_known_are_unknown() -> None:
    found = values(("one", ()), ("two", (ReturnedValue(2, "one"), SameValue(1))))
    why = Unknown("column 2 of the result of one is unknown")
    assert found["two"] == (why, why)


def test_the_transaction_that_calls_a_statement_most_decides() -> None:
    def kind(weight: float, times: float, value: str) -> CapturedTransaction:
        return CapturedTransaction(weight, (CapturedCall("one", times, (Constant(value),)),))

    found = typical_values(workload(kind(5, 1, "often"), kind(2, 4, "most"), kind(6, 1, "more")), {})
    assert found == {"one": ("most",)}
