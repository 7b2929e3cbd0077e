"""The parallel parts of a plan in EXPLAIN's JSON, and PostgreSQL's rules for the number of workers. Pure.

A Gather has the workers of the path below it, and a join has those of its outer side. So one scan determines
the number, found by descending on the outer side, or the children of an Append do.

The rules are the same in 14 to 18. Source: ``compute_parallel_worker`` and ``add_paths_to_append_rel`` in
src/backend/optimizer/path/allpaths.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from pgdyno.postgres.parallel_degree import Gather, Scan

Plan: TypeAlias = Mapping[str, Any]
_APPENDS = frozenset({"Append", "Merge Append"})
_NOT_OUTER = frozenset({"InitPlan", "SubPlan", "Inner"})
_TEXTS = frozenset({"Output", "Sort Key", "Group Key", "Presorted Key", "Function Call", "Cache Key"})
_OVERFLOW = (2**31 - 1) // 3  # PostgreSQL stops tripling there: INT_MAX / 3


def nodes(plan: Plan) -> Iterator[Plan]:
    """Yield a plan's top node and all nodes below it."""
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def gathers(plan: Plan) -> tuple[Gather, ...]:
    """Return the nodes that start workers, in descending order of workers."""
    found = (_gather(node) for node in nodes(plan) if node["Node Type"] in ("Gather", "Gather Merge"))
    return tuple(sorted(found, key=lambda gather: -gather.workers))


def planned_workers(plan: Plan) -> int:
    """Return the largest number of workers of a node in a plan; 0 if no node starts any."""
    return max((gather.workers for gather in gathers(plan)), default=0)


def same_gather(plan: Plan, gather: Gather) -> Gather | None:
    """Return the Gather in another plan with the same shared scans; None if there is none."""
    return next((one for one in gathers(plan) if _shared(one) == _shared(gather)), None)


def scans(plan: Plan) -> tuple[Scan, ...]:
    """Return all scans of tables in a plan."""
    return tuple(_scan(node) for node in nodes(plan) if _is_scan(node))


def shape(plan: Plan) -> str:
    """Return the scan and join types of a plan, ignoring workers."""
    kinds = {str(node["Node Type"]) for node in nodes(plan)}
    return ", ".join(sorted(filter(_is_scan_or_join, kinds)))


def _is_scan_or_join(node_type: str) -> bool:
    return node_type.endswith(("Scan", "Join")) or node_type == "Nested Loop"


def written_by(plan: Plan) -> str | None:
    """Return a writing statement's command in upper case; None if the statement only reads.

    CREATE TABLE AS counts as reading: its plan is that of the query.
    """
    return str(plan["Operation"]).upper() if plan["Node Type"] == "ModifyTable" else None


def has_node(plan: Plan, name: str) -> bool:
    """Whether the plan has a node of this type."""
    return any(node["Node Type"] == name for node in nodes(plan))


def has_initial_plans(plan: Plan) -> bool:
    """Whether the top node has InitPlans."""
    return any(child.get("Parent Relationship") == "InitPlan" for child in plan.get("Plans", ()))


def expressions(plan: Plan) -> str:
    """Return all expressions of a plan as SQL, one per line."""
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
    return (child for child in node.get("Plans", ()) if child.get("Parent Relationship") not in _NOT_OUTER)


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
    """Return the number of workers for a scan's size: one from the threshold, one more per tripling.

    ``is_child``: a child of a partitioned or inherited table, which gets at least one worker.
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
    """Return the largest threshold at which ``pages`` get ``workers`` workers; None for too few pages."""
    if workers < 1:
        return None
    threshold = pages // 3 ** (workers - 1)
    return threshold if threshold >= 1 else None


def workers_by_children(children: int) -> int:
    """Return a Parallel Append's minimum number of workers: the binary logarithm of its children, plus 1."""
    return children.bit_length()
