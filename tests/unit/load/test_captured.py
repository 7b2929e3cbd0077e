"""A captured workload as our driver is told it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.base.errors import UsageError
from pgdyno.load.captured import ColumnDraws, captured_options
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
    Ordinal,
    Parameter,
    RangeEnd,
    ReturnedValue,
    SameValue,
    Uuid,
)
from pgdyno.postgres.statement_counts import Seen

ANY = {"draw": "integer", "low": 1, "high": 9}
DRAWS = ColumnDraws({"public.t.a": ANY}, {"public.t.a": 9})


def workload(*calls: CapturedCall) -> CapturedWorkload:
    seen = Seen(1, 1.0, 1, 1, 0)
    statements = (
        CapturedStatement("one", "SELECT $1", seen),
        CapturedStatement("two", "SELECT $1, $2", seen, is_prepared=False),
    )
    return CapturedWorkload("w", "18", 1, "d", 1.0, 1, statements, (CapturedTransaction(2.5, calls),))


def test_statements_and_transactions_are_told_by_place() -> None:
    options = captured_options(workload(CapturedCall("two", 1.5), CapturedCall("one", 1.0)), DRAWS)
    assert options == {
        "statements": [
            {"name": "one", "sql": "SELECT $1", "prepared": True},
            {"name": "two", "sql": "SELECT $1, $2", "prepared": False},
        ],
        "samples": [],
        "transactions": [
            {
                "weight": 2.5,
                "calls": [
                    {"statement": 1, "times": 1.5, "parameters": []},
                    {"statement": 0, "times": 1.0, "parameters": []},
                ],
            }
        ],
    }


@pytest.mark.parametrize(
    ("parameter", "draw"),
    [
        (ColumnValue("public.t.a"), ANY),
        (ArrayOf("public.t.a", 3), {"draw": "array", "of": ANY, "length": 3}),
        (ReturnedValue(2, "one"), {"draw": "returned", "call": 0, "column": 1, "plus": 0}),
        (ReturnedValue(2, "one", 1), {"draw": "returned", "call": 0, "column": 1, "plus": 1}),
        (Ordinal(), {"draw": "ordinal"}),
        (NewKey("public.t.a"), {"draw": "sequence", "start": 10, "part": 0, "parts": 1}),
        (Uuid(), {"draw": "uuid"}),
        (
            Between(1, 9, "zipfian"),
            {"draw": "integer", "low": 1, "high": 9, "distribution": "zipfian"},
        ),
        (OneOf(("a", "b"), (3.0, 1.0)), {"draw": "one-of", "sample": 0}),
        (
            OneOf(("a", "b"), nulls=2.0),
            {
                "draw": "mixture",
                "parts": [
                    [2.0, {"draw": "one-of", "sample": 0}],
                    [2.0, {"draw": "null"}],
                ],
            },
        ),
        (Between(-5, 5), {"draw": "integer", "low": -5, "high": 5}),
        (Letters(2, 3), {"draw": "text", "least": 2, "most": 3}),
        (Constant("x"), {"draw": "constant", "value": "x"}),
        (Constant(None), {"draw": "null"}),
        (SameValue(1, "one", plus=3), {"draw": "same-as", "call": 0, "parameter": 0, "plus": 3}),
    ],
)
def test_each_parameter_is_drawn_in_its_way(parameter: Parameter, draw: object) -> None:
    calls = CapturedCall("one", 1.0, (Constant("first"),)), CapturedCall("two", 1.0, (parameter,))
    options = captured_options(workload(*calls), DRAWS)
    assert options["transactions"][0]["calls"][1]["parameters"] == [draw]


def test_texts_are_sent_once_for_all_transactions_that_draw_them() -> None:
    names = {"draw": "one-of", "values": ["a", "b", "c", "d"]}
    draws = ColumnDraws({"public.t.a": ANY, "public.t.name": names}, {})
    name, kept = ColumnValue("public.t.name"), OneOf(("x", "y"), (3.0, 1.0))
    one = workload(CapturedCall("one", 1.0, (name,)), CapturedCall("two", 1.0, (name, kept)))
    one = replace(one, transactions=one.transactions * 3)
    options = captured_options(one, draws)
    assert options["samples"] == [
        {"values": ["a", "b", "c", "d"], "weights": []},
        {"values": ["x", "y"], "weights": [3.0, 1.0]},
    ]
    drawn = [call["parameters"] for kind in options["transactions"] for call in kind["calls"]]
    of_column, of_values = {"draw": "one-of", "sample": 0}, {"draw": "one-of", "sample": 1}
    assert drawn == [[of_column], [of_column, of_values]] * 3


def test_favoured_values_are_drawn_from_equally_likely_parts_of_the_column() -> None:
    names = {"draw": "one-of", "values": ["a", "b", "c", "d"]}
    draws = ColumnDraws({"public.t.a": ANY, "public.t.name": names}, {})
    calls = CapturedCall("two", 1.0, (ColumnValue("public.t.a"), ColumnValue("public.t.name")))
    one = workload(calls)
    # half of the keys are 1 to 3, half 9; half of the names "a" or "b", half "d"
    favours = {1: (0.0, 0.3, 0.99), 2: (0.0, 0.3, 0.8)}
    one = replace(one, statements=(one.statements[0], replace(one.statements[1], favours=favours)))
    options = captured_options(one, draws)
    [[key, name]] = [call["parameters"] for call in options["transactions"][0]["calls"]]
    assert key == {"draw": "histogram", "bounds": [1, 3, 9]}
    assert name == {"draw": "one-of", "sample": 0}
    [sample] = options["samples"]
    assert sample["weights"] == pytest.approx([1 / 2, 1 / 2 + 1 / 3, 1 / 3, 1 / 3])


def test_a_statement_that_names_itself_repeats_its_previous_call() -> None:
    first, again = CapturedCall("one", 1.0, (Uuid(),)), CapturedCall("one", 1.0, (SameValue(1, "one"),))
    options = captured_options(workload(first, CapturedCall("two", 1.0), again, again), DRAWS)
    drawn = [call["parameters"] for call in options["transactions"][0]["calls"]]
    same = {"draw": "same-as", "parameter": 0, "plus": 0}
    assert drawn == [[{"draw": "uuid"}], [], [{**same, "call": 0}], [{**same, "call": 2}]]


def test_a_parameter_of_the_same_call_is_told_by_that_call() -> None:
    calls = CapturedCall("one", 1.0), CapturedCall("two", 1.0, (Constant("x"), SameValue(1, plus=9)))
    options = captured_options(workload(*calls), DRAWS)
    same = {"draw": "same-as", "call": 1, "parameter": 0, "plus": 9}
    assert options["transactions"][0]["calls"][1]["parameters"][1] == same


def test_the_same_as_a_returned_value_is_that_value() -> None:
    calls = (
        CapturedCall("one", 1.0),
        CapturedCall("two", 1.0, (ReturnedValue(1, "one"), SameValue(1), SameValue(1, "two"))),
    )
    returned = {"draw": "returned", "call": 0, "column": 0, "plus": 0}
    assert captured_options(workload(*calls), DRAWS)["transactions"][0]["calls"][1]["parameters"] == [
        returned,
        returned,
        returned,
    ]
    wider = CapturedCall("two", 1.0, (ReturnedValue(1, "one", plus=1), SameValue(1, plus=-3)))
    drawn = captured_options(workload(calls[0], wider), DRAWS)["transactions"][0]["calls"][1]["parameters"]
    assert drawn == [{**returned, "plus": 1}, {**returned, "plus": -2}]


def test_an_end_is_as_far_from_the_other_as_the_widths_or_any_value_without_them() -> None:
    upper, lower = RangeEnd(1, "public.t.a", rows=3), RangeEnd(1, "public.t.a", is_lower=True)
    draws = ColumnDraws(DRAWS.values, {}, {upper: (2, 7.5), lower: (2.5,)})
    calls = CapturedCall("one", 1.0), CapturedCall("two", 1.0, (Constant("x"), upper, lower))
    drawn = captured_options(workload(*calls), draws)["transactions"][0]["calls"][1]["parameters"]
    end = {"draw": "range-end", "call": 1, "parameter": 0}
    assert drawn[1:] == [{**end, "widths": [2, 7.5]}, {**end, "widths": [-2.5]}]
    returned = CapturedCall("two", 1.0, (ReturnedValue(1, "one"), upper))
    drawn = captured_options(workload(calls[0], returned), draws)["transactions"][0]["calls"][1]["parameters"]
    assert drawn[1] == ANY
    assert captured_options(workload(*calls), DRAWS)["transactions"][0]["calls"][1]["parameters"][1] == ANY


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(UsageError, match='calls the statement "none", which does not exist') as caught:
        captured_options(workload(CapturedCall("none", 1.0)), DRAWS)
    assert caught.value.hint == "known: one, two"
    with pytest.raises(UsageError, match='the transaction has no earlier call of "two"'):
        captured_options(workload(CapturedCall("one", 1.0, (SameValue(1, "two"),))), DRAWS)
    with pytest.raises(UsageError, match="unknown column"):
        captured_options(workload(CapturedCall("one", 1.0, (ColumnValue("public.t.z"),))), DRAWS)


def test_two_parameters_that_draw_new_keys_of_a_column_draw_different_ones() -> None:
    new = NewKey("public.t.a")
    options = captured_options(
        workload(CapturedCall("one", 1.0, (new,)), CapturedCall("two", 1.0, (new,))), DRAWS
    )
    drawn = [call["parameters"][0] for call in options["transactions"][0]["calls"]]
    assert [(one["part"], one["parts"]) for one in drawn] == [(0, 2), (1, 2)]
