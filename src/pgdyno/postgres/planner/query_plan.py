"""Read plans from EXPLAIN (FORMAT JSON) and describe the differences between two. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from pgdyno.postgres.plan_document import PlanNode

_DETAILS = ("Index Name", "CTE Name", "Join Type", "Strategy", "Partial Mode", "Subplan Name")
_USUAL = frozenset({"Inner", "Plain", "Simple"})
"""Values that are omitted as the usual case: an inner join, an aggregate without grouping."""


def plan_of(document: Mapping[str, Any]) -> PlanNode:
    """Return the plan in a JSON node: the value of "Plan", or an item of "Plans"."""
    kind = f"Parallel {document['Node Type']}" if document.get("Parallel Aware") else document["Node Type"]
    relation, alias = document.get("Relation Name"), document.get("Alias")
    named = f" {alias}" if alias and alias != relation else ""
    details = [str(document[key]) for key in _DETAILS if key in document]
    return PlanNode(
        name=f"{kind} on {relation}{named}" if relation else kind,
        details=tuple(detail for detail in details if detail not in _USUAL),
        workers=document.get("Workers Planned"),
        rows=float(document["Plan Rows"]),
        children=tuple(plan_of(child) for child in document.get("Plans", ())),
    )


def shape(plan: PlanNode) -> tuple[str, ...]:
    """Return a plan as lines indented by depth; plans with equal lines count as equal."""
    return tuple(f"{'  ' * depth}{node.text}" for depth, node in plan.walk())


def join_order(plan: PlanNode) -> tuple[str, ...]:
    """Return the tables in the plan's order: outer sides first."""
    return tuple(node.name.partition(" on ")[2] for _, node in plan.walk() if " on " in node.name)


def plan_difference(before: PlanNode, after: PlanNode) -> tuple[str, ...]:
    """Return a diff of both shapes, with "- " and "+ " on changed lines; empty if they are equal."""
    old, new = shape(before), shape(after)
    if old == new:
        return ()
    return tuple(line for line in difflib.ndiff(old, new) if not line.startswith("?"))


def kinds_of_difference(before: PlanNode, after: PlanNode) -> tuple[str, ...]:
    """Return which aspects of two plans differ: workers, join order, nodes; empty if none does."""
    return tuple(_kinds(before, after))


def _kinds(before: PlanNode, after: PlanNode) -> Iterator[str]:
    old, new = before.most_workers, after.most_workers
    if old != new:
        yield f"{old} → {new} workers"
    if join_order(before) != join_order(after):
        yield "other join order"
    without_workers = [
        [(depth, node.name, node.details) for depth, node in plan.walk()] for plan in (before, after)
    ]
    if without_workers[0] != without_workers[1]:
        yield "other nodes"
