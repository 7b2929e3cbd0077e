"""Rows that plans read, and their dearest nodes. Documents have the properties that PostgreSQL 18 gives."""

from __future__ import annotations

from typing import Any

import pytest

from pgdyno.postgres.planner.rows_read import reading_of, tables_of

ROWS = {("public", "orders"): 200_000.0, ("public", "customers"): 50_000.0}


def node(kind: str, cost: float, rows: float, *below: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"Node Type": kind, "Total Cost": cost, "Plan Rows": rows, "Plans": list(below), **more}


def scan(kind: str, table: str, cost: float, rows: float, **more: Any) -> dict[str, Any]:
    return node(kind, cost, rows, **{"Relation Name": table, "Schema": "public", "Alias": table, **more})


def test_a_plan_that_did_not_run_reads_whole_tables() -> None:
    plan = scan("Seq Scan", "orders", 4000.0, 4, Filter="(orders.customer_id = $1)")
    found = reading_of([plan], ROWS)
    assert found.rows == 200_000
    assert found.is_estimated
    assert found.node == "Seq Scan on orders (filter (orders.customer_id = ?))"
    assert found.node_share == 1.0
    assert tables_of(plan) == {("public", "orders")}


def test_an_analysed_plan_reads_what_it_returned_and_removed_in_all_loops() -> None:
    removed = {"Rows Removed by Filter": 66_665, "Actual Rows": 1.67, "Actual Loops": 3}
    below = scan("Seq Scan", "orders", 3000.0, 2, **removed)
    plan = node("Gather", 4000.0, 5, below, **{"Actual Rows": 5, "Actual Loops": 1})
    found = reading_of([plan], {})
    assert found.rows == pytest.approx(200_000, abs=1)
    assert not found.is_estimated
    assert found.node == "Seq Scan on orders"
    assert found.node_share == 0.75


def test_the_inner_side_of_a_nested_loop_runs_once_per_outer_row() -> None:
    outer = scan("Seq Scan", "customers", 1000.0, 50)
    inner = scan("Index Scan", "orders", 8.0, 4, **{"Index Name": "orders_customer"})
    plan = node("Nested Loop", 1500.0, 200, outer, inner, **{"Join Type": "Inner"})
    found = reading_of([plan], ROWS)
    assert found.rows == 50_000 + 50 * 4
    assert found.node == "Seq Scan on customers"
    assert found.node_share == pytest.approx(1000 / (1000 + 400 + 100))


def test_a_materialised_inner_side_runs_once() -> None:
    outer = scan("Seq Scan", "customers", 1000.0, 50)
    stored = node("Materialize", 4100.0, 4, scan("Seq Scan", "orders", 4000.0, 4))
    assert reading_of([node("Nested Loop", 9000.0, 1, outer, stored)], ROWS).rows == 250_000


def test_a_changed_table_is_read_by_the_scan_below_alone() -> None:
    below = scan("Index Scan", "orders", 8.0, 1)
    plan = node("ModifyTable", 8.5, 0, below, **{"Relation Name": "orders", "Schema": "public"})
    assert reading_of([plan], ROWS).rows == 1


def test_a_limit_does_not_make_other_nodes_dear() -> None:
    below = node("Sort", 5000.0, 1000, scan("Seq Scan", "orders", 4000.0, 1000))
    found = reading_of([node("Limit", 10.0, 1, below)], ROWS)
    assert found.node == "Seq Scan on orders"
    assert found.node_share == 0.8


def test_rows_are_the_mean_over_plans_of_several_values() -> None:
    few, many = (
        scan("Index Scan", "orders", 8.0, 1, **{"Actual Rows": rows, "Actual Loops": 1}) for rows in (2, 4)
    )
    assert reading_of([few, many], {}).rows == 3
