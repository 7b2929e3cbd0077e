"""Plans as PostgreSQL 18 explains them, cut down by hand, and how two of them differ."""

from __future__ import annotations

from typing import Any

from pgdyno.postgres.planner.query_plan import (
    join_order,
    kinds_of_difference,
    plan_difference,
    plan_of,
    shape,
)


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
