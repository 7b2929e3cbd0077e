"""Manifest fragments for PostgreSQL operators on Kubernetes, to be merged into a resource."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pgdyno.model.plans.plan import HUGE_PAGES, Plan, PlanLine
from pgdyno.plan.formats._contract import setting_lines, summary
from pgdyno.plan.formats._targets import select, target
from pgdyno.plan.formats._yaml import Entry, below, document
from pgdyno.postgres.server import Server

_POOL = re.compile(r"/hugepages-(\d+)kB/nr_hugepages$")
_KB_PER_MB = 1 << 10


@dataclass(frozen=True)
class Operator:
    """Differences between operators."""

    target: str  # name of its data file
    resource: str  # kubectl's name for its clusters
    path: tuple[str, ...]  # keys down to the settings
    resources: str  # key of a pod's resource requests
    restart: str  # how it handles settings that need a restart


def fragment(plan: Plan, server: Server, operator: Operator) -> str:
    """Return a fragment for ``kubectl patch``.

    Raises: SettingError for a setting that the server does not know.
    """
    selection = select(plan, server, target(operator.target))
    taken = selection.plan
    head = [
        f"pgdyno: {summary(taken, server)}.",
        f"Apply: kubectl patch {operator.resource} CLUSTER --type merge --patch-file FILE",
        "Better: copy it into your manifest; otherwise the next apply of the manifest undoes it.",
        "Undo: the same with the former values, or with null for a setting that the manifest did not have.",
        operator.restart,
        *_huge_pages(plan, operator),
    ]
    entries = (
        Entry(line.change.key, line.change.value, selection.explain(line, _undo(line)))
        for line in setting_lines(taken)
    )
    return document(head, below(operator.path, entries), selection.left_out)


def _undo(line: PlanLine) -> str:
    return (
        f'"{line.change.current}" again, or null if the manifest did not have it'
        if line.change.current
        else "null"
    )


def _huge_pages(plan: Plan, operator: Operator) -> Iterator[str]:
    """Describe the resources that a pod must request for huge pages; the node's pool alone is not enough."""
    for line in plan.lines:
        match = _POOL.search(line.change.key)
        if line.change.kind == HUGE_PAGES and match is not None:
            page_mb = int(match[1]) // _KB_PER_MB
            size = "1Gi" if page_mb == _KB_PER_MB else f"{page_mb}Mi"
            yield f"Huge pages: a pod gets them only if it requests them in {operator.resources}.limits:"
            yield f'hugepages-{size}: "{int(line.change.value) * page_mb}Mi"'
            yield "in addition to memory, and only from a node that has reserved as many."
