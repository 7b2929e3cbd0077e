"""Rows that a plan reads from tables, and its dearest node. Pure, from nodes of EXPLAIN (FORMAT JSON).

Rows of plans that ran (EXPLAIN ANALYZE) are returned and removed ones, of all loops. For a plan that did not
run, they are estimates: a sequential scan reads its whole table, other scans the rows that the planner
expects; the inner side of a nested loop runs as often as the outer side is expected to return a row.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pgdyno.postgres.planner.fingerprint import line

TableName: TypeAlias = tuple[str, str]
"""A table's schema and name."""
Node: TypeAlias = Mapping[str, Any]

_REMOVED = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
_WHOLE_TABLE = ("Seq Scan", "Sample Scan")
_RUNS_ONCE = frozenset({"Materialize", "Hash"})


@dataclass(frozen=True)
class PlanReading:
    """The rows of tables that an execution of a plan reads, as a mean, and the plan's dearest node.

    ``node_share`` is the node's part of the plan's estimated cost, without the nodes below it.
    """

    rows: float
    is_estimated: bool
    node: str
    node_share: float


def reading_of(plans: Sequence[Node], table_rows: Mapping[TableName, float]) -> PlanReading:
    """Return the mean over plans of one statement, with the first one's dearest node.

    ``table_rows`` are the numbers of rows of tables, needed for plans that did not run.
    """
    readings = [_of_plan(plan, table_rows) for plan in plans]
    mean = sum(one.rows for one in readings) / len(readings)
    return replace(readings[0], rows=mean, is_estimated=any(one.is_estimated for one in readings))


def tables_of(plan: Node) -> frozenset[TableName]:
    """Return the tables in a plan."""
    return frozenset(_table(node) for node, _ in _nodes(plan, 1.0) if "Relation Name" in node)


def _of_plan(plan: Node, table_rows: Mapping[TableName, float]) -> PlanReading:
    nodes = tuple(_nodes(plan, 1.0))
    rows = sum(_rows(node, times, table_rows) for node, times in nodes)
    costs = [_own_cost(node, times) for node, times in nodes]
    dearest = max(range(len(nodes)), key=lambda place: costs[place])
    share = costs[dearest] / (sum(costs) or 1.0)
    return PlanReading(rows, "Actual Loops" not in plan, line(nodes[dearest][0]), share)


def _nodes(node: Node, times: float) -> Iterator[tuple[Node, float]]:
    """Yield a node and all below it, each with its expected number of executions."""
    yield node, times
    for place, child in enumerate(_children(node)):
        yield from _nodes(child, _times(node, place, times))


def _children(node: Node) -> Sequence[Node]:
    children: Sequence[Node] = node.get("Plans", ())
    return children


def _times(node: Node, place: int, times: float) -> float:
    """Return how often a child of a node that runs ``times`` times is expected to run."""
    if node["Node Type"] in _RUNS_ONCE:
        return 1.0
    is_inner = node["Node Type"] == "Nested Loop" and place == 1
    return times * max(1.0, _children(node)[0]["Plan Rows"]) if is_inner else times


def _table(node: Node) -> TableName:
    return str(node.get("Schema", "")), str(node["Relation Name"])


def _rows(node: Node, times: float, table_rows: Mapping[TableName, float]) -> float:
    if "Relation Name" not in node or node["Node Type"] == "ModifyTable":
        return 0.0
    if "Actual Loops" in node:
        return float(node["Actual Loops"] * sum(node.get(key, 0) for key in ("Actual Rows", *_REMOVED)))
    expected = float(node["Plan Rows"])
    if node["Node Type"].endswith(_WHOLE_TABLE):
        expected = max(expected, table_rows.get(_table(node), 0.0))
    return times * expected


def _own_cost(node: Node, times: float) -> float:
    """Return a node's cost without its children's; not below 0: a Limit costs less than the scan under it."""
    children = enumerate(_children(node))
    below = sum(_cost(child, _times(node, place, times)) for place, child in children)
    return max(0.0, _cost(node, times) - below)


def _cost(node: Node, times: float) -> float:
    return times * float(node.get("Total Cost", 0.0))
