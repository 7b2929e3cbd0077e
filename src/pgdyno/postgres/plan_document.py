"""Answers to EXPLAIN (FORMAT JSON), checked where they come in. Pure.

Later code takes a node's members for granted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pgdyno.base.errors import ServerError

_DEEPEST = 200  # arbitrary: PostgreSQL itself runs out of stack before a plan of so many levels is useful
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
    """One node of a plan, as EXPLAIN names it: "Hash Join", "Parallel Seq Scan on lineitem".

    ``details`` are its index, its kind of join or its strategy, where it has any. ``workers`` are planned for
    what is below a Gather; ``rows`` is the planner's estimate.
    """

    name: str
    details: tuple[str, ...] = ()
    workers: int | None = None
    rows: float = 0.0
    children: tuple[PlanNode, ...] = ()

    @property
    def text(self) -> str:
        """The node in one line."""
        workers = (
            () if self.workers is None else (f"{self.workers} worker{'' if self.workers == 1 else 's'}",)
        )
        said = (*self.details, *workers)
        return f"{self.name} ({', '.join(said)})" if said else self.name

    def walk(self, depth: int = 0) -> Iterator[tuple[int, PlanNode]]:
        """Yield this node and all below it, each with its depth."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)

    @property
    def most_workers(self) -> int:
        """How many workers the plan asks for at most."""
        return max((node.workers or 0 for _, node in self.walk()), default=0)


def explained(answer: object) -> Mapping[str, Any]:
    """Return the document in an answer: that of the one statement. Raises: ServerError if it has no plan."""
    document = answer[0] if isinstance(answer, list) and answer else None
    if not isinstance(document, dict):
        raise _unreadable("it is no list with an object in it")
    _require_types(document)
    checked_plan(document.get("Plan"))
    return document


def checked_plan(plan: object) -> Mapping[str, Any]:
    """Return a plan's top node: all nodes have the members that are read of them, in the right types.

    Raises: ServerError naming the first member that is missing or of another type.
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
        raise _unreadable("one of its nodes is no object")
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
        "the server's answer to EXPLAIN (FORMAT JSON) is not a plan",
        detail=why,
        hint="is this a PostgreSQL server, and nothing between that changes its answers?",
    )
