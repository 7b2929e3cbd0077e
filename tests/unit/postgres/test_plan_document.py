"""Answers to EXPLAIN that no PostgreSQL gives are refused with what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from pgdyno.base.errors import ServerError
from pgdyno.postgres.plan_document import (
    checked_plan,
    explained,
    join_order,
    kinds_of_difference,
    plan_difference,
    plan_of,
    shape,
)

SORT = {"Node Type": "Sort", "Plan Rows": 1}
SCAN = {"Node Type": "Seq Scan", "Plan Rows": 1.5, "Relation Name": "t", "Parallel Aware": True}


def nested(levels: int) -> dict[str, Any]:
    plan: dict[str, Any] = SORT
    for _ in range(levels - 1):
        plan = {**SORT, "Plans": [plan]}
    return plan


@pytest.mark.parametrize(
    ("plan", "detail"),
    [
        (None, "one of its nodes is not an object"),
        ({}, 'one of its nodes has no "Node Type"'),
        ({"Node Type": 1}, 'the "Node Type" of one of its nodes is int'),
        ({**SORT, "Plan Rows": True}, 'the "Plan Rows" of one of its nodes is bool'),
        ({**SORT, "Plans": [1]}, "one of its nodes is not an object"),
        ({**SORT, "Plans": {}}, 'the "Plans" of one of its nodes is dict'),
        ({**SORT, "Plans": [{"Node Type": "Sort"}]}, 'one of its nodes has no "Plan Rows"'),
        ({**SORT, "Node Type": "Gather"}, 'one of its nodes has no "Workers Planned"'),
        ({**SORT, "Node Type": "ModifyTable"}, 'one of its nodes has no "Operation"'),
        ({**SORT, "Relation Name": "t"}, 'one of its nodes has no "Parallel Aware"'),
        (nested(201), "it has more than 200 levels"),
    ],
)
def test_a_plan_that_is_none_is_refused(plan: object, detail: str) -> None:
    with pytest.raises(ServerError) as caught:
        checked_plan(plan)
    assert caught.value.message == "the server's response to EXPLAIN (FORMAT JSON) is not a plan"
    assert caught.value.detail == detail


@pytest.mark.parametrize("plan", [SORT, SCAN, {**SORT, "Plans": [SCAN, SORT]}, nested(200)])
def test_a_plan_passes_as_it_is(plan: dict[str, Any]) -> None:
    assert checked_plan(plan) is plan
    assert explained([{"Plan": plan, "Planning Time": 0.1}])["Plan"] is plan


@pytest.mark.parametrize("answer", [None, [], {}, ["x"], [{"Planning Time": "0.1", "Plan": SORT}], [{}]])
def test_an_answer_without_a_plan_is_refused(answer: object) -> None:
    with pytest.raises(ServerError):
        explained(answer)


def scan(relation: str, **more: Any) -> dict[str, Any]:
    return {
        "Node Type": "Seq Scan",
        "Parallel Aware": False,
        "Relation Name": relation,
        "Alias": relation,
        "Plan Rows": 10,
        "Total Cost": 3.5,
        **more,
    }


def join(outer: dict[str, Any], inner: dict[str, Any], kind: str = "Inner") -> dict[str, Any]:
    hashed = {"Node Type": "Hash", "Plan Rows": 10, "Plans": [inner]}
    return {"Node Type": "Hash Join", "Join Type": kind, "Plan Rows": 5, "Plans": [outer, hashed]}


def test_a_plan_keeps_nodes_relations_and_kinds_and_forgets_costs() -> None:
    plan = plan_of(join(scan("orders"), scan("nation", Alias="n1"), "Semi"))
    assert shape(plan) == (
        "Hash Join (Semi)",
        "  Seq Scan on orders",
        "  Hash",
        "    Seq Scan on nation n1",
    )
    assert plan == plan_of(join(scan("orders", **{"Total Cost": 99}), scan("nation", Alias="n1"), "Semi"))


def test_an_inner_join_is_not_named_as_such_and_an_index_is() -> None:
    by_index = {**scan("orders"), "Node Type": "Index Scan", "Index Name": "orders_pkey"}
    assert shape(plan_of(join(by_index, scan("nation"))))[:2] == (
        "Hash Join",
        "  Index Scan on orders (orders_pkey)",
    )


def test_parallel_plans_say_how_many_workers_were_planned() -> None:
    gathered = {
        "Node Type": "Gather",
        "Workers Planned": 2,
        "Plan Rows": 1,
        "Plans": [scan("lineitem", **{"Parallel Aware": True})],
    }
    plan = plan_of(gathered)
    assert plan.most_workers == 2
    assert shape(plan) == ("Gather (2 workers)", "  Parallel Seq Scan on lineitem")


def test_equal_shapes_differ_in_nothing() -> None:
    one, other = plan_of(scan("part")), plan_of(scan("part", **{"Plan Rows": 11}))
    assert plan_difference(one, other) == ()
    assert kinds_of_difference(one, other) == ()


def test_another_join_order_is_named() -> None:
    one, other = plan_of(join(scan("a"), scan("b"))), plan_of(join(scan("b"), scan("a")))
    assert join_order(one) == ("a", "b")
    assert kinds_of_difference(one, other) == ("other join order", "other nodes")
    lines = plan_difference(one, other)
    assert [line for line in lines if line.startswith("- ")]
    assert [line for line in lines if line.startswith("+ ")]
    assert not [line for line in lines if line.startswith("?")]


def test_only_another_number_of_workers_is_no_other_node() -> None:
    def gathered(workers: int) -> dict[str, Any]:
        return {"Node Type": "Gather", "Workers Planned": workers, "Plan Rows": 1, "Plans": [scan("a")]}

    assert kinds_of_difference(plan_of(gathered(1)), plan_of(gathered(3))) == ("1 → 3 workers",)
