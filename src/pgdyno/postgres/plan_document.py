"""Output of EXPLAIN (FORMAT JSON), checked on receipt. Pure.

Later code relies on the presence and the types of a node's properties.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pgdyno.base.errors import ServerError

_DEEPEST = 200  # arbitrary; PostgreSQL runs out of stack before a plan this deep is useful
_NUMBER = (int, float)
_TYPES: Mapping[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("Node Type", "Relation Name", "Alias", "Schema", "Index Name", "Operation"), str),
    **dict.fromkeys(("Parent Relationship", "CTE Name", "Join Type", "Strategy", "Partial Mode"), str),
    **dict.fromkeys(("Parallel Aware", "Single Copy"), bool),
    **dict.fromkeys(("Workers Planned", "Workers Launched", "Shared Hit Blocks", "Shared Read Blocks"), int),
    **dict.fromkeys(("Plan Rows", "Total Cost", "Planning Time", "Execution Time"), _NUMBER),
    "Plans": list,
}


@dataclass(frozen=True)
class PlanNode:
    """One node of a plan, named as in EXPLAIN: "Hash Join", "Parallel Seq Scan on lineitem".

    ``details``: its index, join type or strategy, if any. ``workers``: planned by a Gather node. ``rows`` is
    the planner's estimate.
    """

    name: str
    details: tuple[str, ...] = ()
    workers: int | None = None
    rows: float = 0.0
    children: tuple[PlanNode, ...] = ()

    @property
    def text(self) -> str:
        """The node as one line of text."""
        workers = (
            () if self.workers is None else (f"{self.workers} worker{'' if self.workers == 1 else 's'}",)
        )
        notes = (*self.details, *workers)
        return f"{self.name} ({', '.join(notes)})" if notes else self.name

    def walk(self, depth: int = 0) -> Iterator[tuple[int, PlanNode]]:
        """Yield this node and all below it, each with its depth."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)

    @property
    def most_workers(self) -> int:
        """The most workers that one node of the plan requests."""
        return max((node.workers or 0 for _, node in self.walk()), default=0)


def explained(answer: object) -> Mapping[str, Any]:
    """Return the document for a single statement. Raises: ServerError if it has no plan."""
    document = answer[0] if isinstance(answer, list) and answer else None
    if not isinstance(document, dict):
        raise _unreadable("it is not a list of objects")
    _require_types(document)
    checked_plan(document.get("Plan"))
    return document


def checked_plan(plan: object) -> Mapping[str, Any]:
    """Return a plan's top node, after checking that all nodes have the required properties and types.

    Raises: ServerError naming the first property that is missing or has another type.
    """
    level = [_node(plan)]
    top = level[0]
    for _ in range(_DEEPEST):
        level = [_node(child) for node in level for child in node.get("Plans", ())]
        if not level:
            return top
    raise _unreadable(f"it has more than {_DEEPEST} levels")


def _node(node: object) -> dict[str, Any]:
    if not isinstance(node, dict):
        raise _unreadable("one of its nodes is not an object")
    _require_types(node)
    for name in _required(node):
        if name not in node:
            raise _unreadable(f'one of its nodes has no "{name}"')
    return node


def _required(node: Mapping[str, Any]) -> Iterator[str]:
    yield from ("Node Type", "Plan Rows")
    if node.get("Node Type") in ("Gather", "Gather Merge"):
        yield "Workers Planned"
    if node.get("Node Type") == "ModifyTable":
        yield "Operation"
    elif "Relation Name" in node:
        yield "Parallel Aware"


def _require_types(members: Mapping[str, Any]) -> None:
    for name, kind in _TYPES.items():
        value = members.get(name)
        if name in members and (
            not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)
        ):
            raise _unreadable(f'the "{name}" of one of its nodes is {type(value).__name__}')


def _unreadable(why: str) -> ServerError:
    return ServerError(
        "the server's response to EXPLAIN (FORMAT JSON) is not a plan",
        detail=why,
        hint="check that this is a PostgreSQL server and that no proxy alters its responses",
    )


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
