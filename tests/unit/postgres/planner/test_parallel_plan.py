"""What is read from plans. They are written as PostgreSQL 18 prints them, with fields left out."""

from __future__ import annotations

from typing import Any

from pgdyno.postgres.parallel_degree import Scan
from pgdyno.postgres.planner.parallel_plan import (
    expressions,
    gathers,
    has_initial_plans,
    has_node,
    planned_workers,
    same_gather,
    scans,
    shape,
    written_by,
)


def node(kind: str, *children: dict[str, Any], role: str = "Outer", **more: Any) -> dict[str, Any]:
    """Return a node as EXPLAIN writes it; ``more`` with "_" for a blank."""
    named = {name.replace("_", " "): value for name, value in more.items()}
    found = {"Node Type": kind, "Parent Relationship": role, "Parallel Aware": False, "Plan Rows": 5, **named}
    return {**found, "Plans": list(children)} if children else found


def scan(table: str, kind: str = "Seq Scan", *, shared: bool = True, **more: Any) -> dict[str, Any]:
    return node(kind, Parallel_Aware=shared, Relation_Name=table, Schema="s", Alias=table, **more)


def gather(child: dict[str, Any], workers: int = 2, kind: str = "Gather", **more: Any) -> dict[str, Any]:
    return node(kind, child, Workers_Planned=workers, **more)


def shared_scan(table: str, name: str = "Parallel Seq Scan", index: str | None = None) -> Scan:
    return Scan(name, "s", table, table, index)


def test_a_plan_without_a_gather_has_no_workers() -> None:
    plan = node("Aggregate", scan("t", shared=False))
    assert gathers(plan) == ()
    assert planned_workers(plan) == 0
    assert scans(plan) == (shared_scan("t", "Seq Scan"),)


def test_the_workers_of_a_join_come_from_its_outer_side() -> None:
    inner = node("Hash", scan("inner"), role="Inner", Parallel_Aware=True)
    plan = node("Aggregate", gather(node("Hash Join", scan("outer"), inner)))
    (found,) = gathers(plan)
    assert found.scans == (shared_scan("outer"),)
    assert not found.is_append
    assert [one.table for one in scans(plan)] == ["outer", "inner"]


def test_a_subquery_is_gone_through_and_an_initial_plan_is_not() -> None:
    sub = node("Subquery Scan", node("Aggregate", scan("t"), role="Subquery"), role="Outer")
    other = gather(scan("beside"), workers=4)
    plan = gather(sub) | {"Plans": [{**other, "Parent Relationship": "InitPlan"}, sub]}
    assert [(one.workers, one.scans[0].table) for one in gathers(plan)] == [(4, "beside"), (2, "t")]


def test_an_append_has_the_scans_of_all_its_children() -> None:
    parts = [scan("p1", role="Member"), scan("p2", role="Member", shared=False)]
    (found,) = gathers(gather(node("Append", *parts, Parallel_Aware=True)))
    assert found.is_append
    assert found.scans == (shared_scan("p1"),)


def test_a_bitmap_scan_is_of_its_table_and_an_index_scan_of_its_index() -> None:
    bitmap = scan("t", "Bitmap Heap Scan") | {"Plans": [node("Bitmap Index Scan", Index_Name="i")]}
    assert gathers(gather(bitmap))[0].scans == (shared_scan("t", "Parallel Bitmap Heap Scan"),)
    by_index = scan("t", "Index Only Scan", Index_Name="i")
    assert gathers(gather(by_index))[0].scans == (shared_scan("t", "Parallel Index Only Scan", "i"),)


def test_the_same_gather_is_found_by_what_is_shared_in_whatever_way() -> None:
    (wanted,) = gathers(gather(scan("t")))
    other = gather(node("Sort", scan("t", "Index Scan", Index_Name="i")), workers=7, kind="Gather Merge")
    found = same_gather(node("Limit", other, gather(scan("u"))), wanted)
    assert found is not None
    assert (found.name, found.workers) == ("Gather Merge", 7)
    assert same_gather(gather(scan("u")), wanted) is None


def test_one_copy_is_told_from_workers_that_share() -> None:
    (found,) = gathers(gather(node("Result"), workers=1, Single_Copy=True))
    assert found.is_single_copy
    assert found.scans == ()


def test_a_statement_that_writes_is_told_from_a_query_that_does() -> None:
    insert = node("ModifyTable", node("Result"), Operation="Insert", Relation_Name="t", Schema="s")
    assert written_by(insert) == "INSERT"
    assert scans(insert) == ()
    query = node("Aggregate", {**insert, "Parent Relationship": "InitPlan"}, node("CTE Scan"))
    assert written_by(query) is None
    assert has_node(query, "ModifyTable")
    assert has_initial_plans(query)
    assert not has_initial_plans(insert)


def test_expressions_are_collected_from_all_nodes() -> None:
    plan = node(
        "Aggregate",
        scan("t", Filter="f(t.i)", Output=["t.i", "g(t.i)"], Index_Cond="h(1) = t.i"),
        Output=["count(*)"],
    )
    assert expressions(plan).splitlines() == ["count(*)", "f(t.i)", "t.i", "g(t.i)", "h(1) = t.i"]


def test_the_shape_of_a_plan_is_its_scans_and_joins_whatever_its_workers() -> None:
    joined = node("Hash Join", scan("a"), node("Hash", scan("b"), role="Inner"))
    assert shape(node("Aggregate", gather(joined))) == shape(joined) == "Hash Join, Seq Scan"
    looped = node("Nested Loop", scan("a"), scan("b", "Index Only Scan"))
    assert shape(gather(looped)) == "Index Only Scan, Nested Loop, Seq Scan"
