"""Shapes of plans, without costs, constants and names of indexes. Pure.

Kept: kinds of nodes and joins, strategies, directions of scans, tables, conditions and keys, and indexes by
their definitions. Left out: costs, rows, constants, numbers of aliases, names of indexes, names and number of
partitions with equal plans, planned workers. Plans with equal lines count as the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

IndexName: TypeAlias = tuple[str, str]
"""An index's schema and name."""

_DETAILS = (
    *("Join Type", "Strategy", "Partial Mode", "Scan Direction", "Operation", "CTE Name", "Subplan Name"),
    "Function Name",
    *("Sort Key", "Presorted Key", "Group Key", "Hash Cond", "Merge Cond", "Join Filter", "Index Cond"),
    *("Order By", "Recheck Cond", "TID Cond", "Filter", "One-Time Filter", "Cache Key", "Conflict Filter"),
)
_PLAIN = frozenset({"Join Type", "Strategy", "Partial Mode", "Operation"})
"""Properties with values that need no name."""
_USUAL = frozenset({"Inner", "Plain", "Simple", "Forward", "NoMovement"})
_PARTS = frozenset({"Append", "Merge Append"})
_TYPE = (
    r"""::(?:"[^"]*"|[\w.]+)(?:\([\d,]*\))?"""
    r"""(?:\ with(?:out)?\ time\ zone|\ precision|\ varying(?:\(\d+\))?)?(?:\[\])*"""
)
_LITERAL = re.compile(
    rf"""("(?:[^"]|"")*")                                # a quoted name, which stays
      | '(?:[^']|'')*'(?:{_TYPE})?                        # text, with its type
      | \$\d+(?:{_TYPE})?                                  # parameter
      | (?<![\w"])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w"])  # number
    """,
    re.VERBOSE | re.IGNORECASE,
)
_NUMBERED = re.compile(r"_\d+$")


def fingerprint(document: Mapping[str, Any], definitions: Mapping[IndexName, str]) -> tuple[str, ...]:
    """Return a plan as lines indented by depth, from a node of EXPLAIN (FORMAT JSON, VERBOSE).

    An index without a definition has its name.
    """
    plain = _without_alias_numbers(_with_definitions(document, definitions), _aliases(document))
    return tuple(_lines(plain, 0))


def _aliases(node: Mapping[str, Any]) -> dict[str, str]:
    """Return the tables of aliases that the server numbered."""
    alias, table = str(node.get("Alias", "")), node.get("Relation Name")
    found = {alias: str(table)} if table and alias != table and _NUMBERED.search(alias) else {}
    for child in node.get("Plans", ()):
        found |= _aliases(child)
    return found


def _without_alias_numbers(node: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """Return a plan with the names of tables in its conditions, instead of numbered aliases."""
    found = dict(node)
    for key in _DETAILS:
        if aliases and key in found:
            names = "|".join(map(re.escape, aliases))
            text = ", ".join(map(str, node[key])) if isinstance(node[key], list) else str(node[key])
            found[key] = re.sub(rf"\b({names})(?=\.)", lambda match: aliases[match[1]], text)
    if "Plans" in node:
        found["Plans"] = [_without_alias_numbers(child, aliases) for child in node["Plans"]]
    return found


def indexes_of(document: Mapping[str, Any], schema: str = "") -> frozenset[IndexName]:
    """Return the indexes in a plan; ``schema`` is that of the node above.

    An index is in its table's schema. A bitmap index scan names none: the node above it reads the table.
    """
    schema = str(document.get("Schema", schema))
    own = {(schema, str(document["Index Name"]))} if "Index Name" in document else set[IndexName]()
    return frozenset(own.union(*(indexes_of(child, schema) for child in document.get("Plans", ()))))


def _with_definitions(
    node: Mapping[str, Any], definitions: Mapping[IndexName, str], schema: str = ""
) -> dict[str, Any]:
    """Return a plan with indexes' definitions as their names."""
    schema, found = str(node.get("Schema", schema)), dict(node)
    if name := node.get("Index Name"):
        found["Index Name"] = definitions.get((schema, str(name)), str(name))
    if "Plans" in node:
        found["Plans"] = [_with_definitions(child, definitions, schema) for child in node["Plans"]]
    return found


def _lines(node: Mapping[str, Any], depth: int) -> Iterator[str]:
    yield "  " * depth + line(node)
    children = list(node.get("Plans", ()))
    if node["Node Type"] in _PARTS:
        children = _distinct(children)
    for child in children:
        yield from _lines(child, depth + 1)


def _distinct(children: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return one of the children of each shape: partitions with equal plans."""
    shapes: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for child in children:
        tables = sorted(_tables(child), key=len, reverse=True)
        lines = tuple(_without(line, tables) for line in _lines(child, 0))
        shapes.setdefault(lines, child)
    return list(shapes.values())


def _tables(node: Mapping[str, Any]) -> set[str]:
    own = {str(node["Relation Name"])} if "Relation Name" in node else set()
    return own.union(*map(_tables, node.get("Plans", ())))


def _without(line: str, tables: list[str]) -> str:
    for table in tables:
        line = re.sub(rf"(?<!\w){re.escape(table)}(?!\w)", "?", line)
    return line


def line(node: Mapping[str, Any]) -> str:
    """Return a node of a plan in one line, without its children."""
    kind = f"Parallel {node['Node Type']}" if node.get("Parallel Aware") else str(node["Node Type"])
    table = node.get("Relation Name")
    name = f"{kind} on {table}" if table else kind
    details = [_text(key, node[key]) for key in _DETAILS if key in node and str(node[key]) not in _USUAL]
    if index := node.get("Index Name"):
        details.insert(0, f"by {index}")
    return f"{name} ({'; '.join(details)})" if details else name


def _text(key: str, value: object) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    plain = _LITERAL.sub(lambda found: found[1] or "?", text)
    return plain if key in _PLAIN else f"{key.lower()} {plain}"
