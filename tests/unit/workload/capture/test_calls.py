"""Transactions with the parameters of their calls."""

from __future__ import annotations

import pytest

from pgdyno.model.experiments.captured import (
    ColumnValue,
    Constant,
    Letters,
    OneOf,
    Parameter,
    SameValue,
    Uuid,
)
from pgdyno.workload.capture.calls import Statements
from pgdyno.workload.capture.parameters import STEP, Parameters
from pgdyno.workload.capture.transactions import SeenTransaction

FIND, INSERT = 1, 2
KEPT: dict[str | None, int] = {"tag 1": 5, "new 1": 5}
BOTH = SeenTransaction(10, ((FIND, 1.0), (INSERT, 1.0)), is_block=True)


def drawn(find: Parameter, insert: Parameter, *, is_new: bool) -> list[tuple[Parameter, ...]]:
    """Return the parameters of a query and an INSERT that had the same values, which were kept."""
    its = {FIND: Parameters((find,)), INSERT: Parameters((insert,), new=frozenset({1} if is_new else ()))}
    names = {FIND: "find", INSERT: "insert"}
    kept = {FIND: {1: KEPT}, INSERT: {1: KEPT}}
    found = Statements(names, its, {}, (), kept, earlier={(INSERT, 1): [(FIND, 1)]})
    return [one.parameters for one in found.transaction(BOTH, has_control=True).calls]


@pytest.mark.parametrize("new", [Letters(20, 20), Uuid(), Constant("now")])
def test_a_new_value_that_is_looked_for_first_is_none_of_the_kept_ones(new: Parameter) -> None:
    # SELECT id FROM tags WHERE name = $1; without a row INSERT INTO tags (name) VALUES ($1)
    found = drawn(ColumnValue("s.tags.name"), new, is_new=True)
    assert found == [(new,), (SameValue(1, "find"),)]


@pytest.mark.parametrize("other", [ColumnValue("s.tags.name"), STEP])
def test_other_values_that_are_drawn_by_an_earlier_call_are_kept_ones(other: Parameter) -> None:
    found = drawn(Letters(5, 20), other, is_new=False)
    assert found == [(OneOf(("tag 1", "new 1")),), (SameValue(1, "find"),)]
