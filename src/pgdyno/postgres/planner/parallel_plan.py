"""Read the parallel parts of a plan, and PostgreSQL's rules for them, from EXPLAIN's JSON. Pure.

The workers of a Gather are those of the path below it, and a join has those of its outer side: the number
comes from the one scan that is met when one goes down on the outer side, or from the children of an Append.

The rules are equal in 14 to 18. Source: ``compute_parallel_worker`` and ``add_paths_to_append_rel`` in
src/backend/optimizer/path/allpaths.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from pgdyno.postgres.parallel_degree import Gather, Scan

Plan: TypeAlias = Mapping[str, Any]
_APPENDS = frozenset({"Append", "Merge Append"})
_BESIDE = frozenset({"InitPlan", "SubPlan", "Inner"})
_TEXTS = frozenset({"Output", "Sort Key", "Group Key", "Presorted Key", "Function Call", "Cache Key"})
_OVERFLOW = (2**31 - 1) // 3  # PostgreSQL stops tripling there: INT_MAX / 3


def nodes(plan: Plan) -> Iterator[Plan]:
    """Yield a plan's node and all below it."""
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def gathers(plan: Plan) -> tuple[Gather, ...]:
    """Return the nodes that start workers, the one with most workers first."""
    found = (_gather(node) for node in nodes(plan) if node["Node Type"] in ("Gather", "Gather Merge"))
    return tuple(sorted(found, key=lambda gather: -gather.workers))


def planned_workers(plan: Plan) -> int:
    """Return the most workers that one node of a plan asks for; 0 if none does."""
    return max((gather.workers for gather in gathers(plan)), default=0)


def same_gather(plan: Plan, gather: Gather) -> Gather | None:
    """Return the Gather of another plan whose workers share the same scans; None if there is none."""
    return next((one for one in gathers(plan) if _shared(one) == _shared(gather)), None)


def scans(plan: Plan) -> tuple[Scan, ...]:
    """Return all scans of tables in a plan."""
    return tuple(_scan(node) for node in nodes(plan) if _is_scan(node))


def shape(plan: Plan) -> str:
    """Return the scan and join types of a plan, regardless of workers."""
    kinds = {str(node["Node Type"]) for node in nodes(plan)}
    return ", ".join(sorted(filter(_is_scan_or_join, kinds)))


def _is_scan_or_join(node_type: str) -> bool:
    return node_type.endswith(("Scan", "Join")) or node_type == "Nested Loop"


def written_by(plan: Plan) -> str | None:
    """Return the command of a statement that writes, in capitals; None if it only reads.

    A table that a query makes is not in its plan: it is planned as the query alone.
    """
    return str(plan["Operation"]).upper() if plan["Node Type"] == "ModifyTable" else None


def has_node(plan: Plan, name: str) -> bool:
    """Whether there is a node of a type."""
    return any(node["Node Type"] == name for node in nodes(plan))


def has_initial_plans(plan: Plan) -> bool:
    """Whether the top node has plans that are run once, before it."""
    return any(child.get("Parent Relationship") == "InitPlan" for child in plan.get("Plans", ()))


def expressions(plan: Plan) -> str:
    """Return all expressions of a plan, as SQL, on a line each."""
    return "\n".join(text for node in nodes(plan) for text in _expressions(node))


def _gather(node: Plan) -> Gather:
    append = _append_below(node)
    shared = tuple(_shared_scans(node))
    return Gather(
        name=node["Node Type"],
        workers=node["Workers Planned"],
        scans=shared,
        rows=node["Plan Rows"],
        is_append=append,
        is_single_copy=node.get("Single Copy", False),
    )


def _shared(gather: Gather) -> frozenset[tuple[str, str]]:
    return frozenset((scan.relation, scan.alias) for scan in gather.scans)


def _shared_scans(node: Plan) -> Iterator[Scan]:
    for child in _outer(node):
        if _is_scan(child):
            if child["Parallel Aware"]:
                yield _scan(child)
        else:
            yield from _shared_scans(child)


def _append_below(node: Plan) -> bool:
    below = list(_outer(node))
    return any(child["Node Type"] in _APPENDS for child in below) or any(map(_append_below, below))


def _outer(node: Plan) -> Iterator[Plan]:
    return (child for child in node.get("Plans", ()) if child.get("Parent Relationship") not in _BESIDE)


def _is_scan(node: Plan) -> bool:
    return "Relation Name" in node and node["Node Type"] != "ModifyTable"


def _scan(node: Plan) -> Scan:
    return Scan(
        name=f"Parallel {node['Node Type']}" if node["Parallel Aware"] else node["Node Type"],
        schema=node.get("Schema", ""),
        table=node["Relation Name"],
        alias=node.get("Alias", node["Relation Name"]),
        index=node.get("Index Name"),
    )


def _expressions(node: Plan) -> Iterator[str]:
    for name, value in node.items():
        if name in _TEXTS or name.endswith(("Cond", "Filter", "Parameters")):
            yield from map(str, value) if isinstance(value, list) else (str(value),)


def workers_by_size(pages: int, threshold: int, *, is_child: bool = False) -> int:
    """Return how many workers the size of a scan gives: one from the threshold, one more per tripling.

    ``is_child``: of a partitioned or inherited table, of which even the smallest gets one.
    """
    if pages < threshold and not is_child:
        return 0
    workers, step = 1, max(threshold, 1)
    while pages >= step * 3:
        workers, step = workers + 1, step * 3
        if step > _OVERFLOW:
            break
    return workers


def threshold_for(pages: int, workers: int) -> int | None:
    """Return the largest threshold at which ``pages`` pages get ``workers`` workers.

    None: there are too few pages.
    """
    if workers < 1:
        return None
    threshold = pages // 3 ** (workers - 1)
    return threshold if threshold >= 1 else None


def workers_by_children(children: int) -> int:
    """Return the least that a Parallel Append takes: the binary logarithm of its children, plus one."""
    return children.bit_length()
