"""Fragments of manifests for operators of PostgreSQL on Kubernetes, to be merged into a resource."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pgdyno.formats._contract import setting_lines, summary
from pgdyno.formats._targets import select, target
from pgdyno.formats._yaml import Entry, below, document
from pgdyno.model.plan import HUGE_PAGES, Plan, PlanLine
from pgdyno.model.server import Server

_POOL = re.compile(r"/hugepages-(\d+)kB/nr_hugepages$")
_KB_PER_MB = 1 << 10


@dataclass(frozen=True)
class Operator:
    """What is different from operator to operator."""

    target: str  # its data file
    resource: str  # what kubectl calls its clusters
    path: tuple[str, ...]  # keys down to the settings
    resources: str  # where a pod's memory is asked for
    restart: str  # what it does about settings that take one


def fragment(plan: Plan, server: Server, operator: Operator) -> str:
    """Return a fragment for ``kubectl patch``.

    Raises: SettingError for a setting that the server does not know.
    """
    selection = select(plan, server, target(operator.target))
    taken = selection.plan
    head = [
        f"pgdyno: {summary(taken, server)}.",
        f"Apply: kubectl patch {operator.resource} CLUSTER --type merge --patch-file FILE, or copy it into the "
        "manifest, which otherwise undoes it at its next apply.",
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
    return f'"{line.change.current}" again, or null if the manifest did not have it' if line.change.current else "null"


def _huge_pages(plan: Plan, operator: Operator) -> list[str]:
    """Say what a pod has to ask for, so that it gets huge pages: the node's pool alone gives it none."""
    remarks = []
    for line in plan.lines:
        match = _POOL.search(line.change.key)
        if line.change.kind == HUGE_PAGES and match is not None:
            page_mb = int(match[1]) // _KB_PER_MB
            size = "1Gi" if page_mb == _KB_PER_MB else f"{page_mb}Mi"
            remarks.append(
                f"Huge pages: a pod gets them only by {operator.resources}.limits: "
                f'hugepages-{size}: "{int(line.change.value) * page_mb}Mi", with requests of the same amount and of '
                "memory beside them; the node has to have reserved as many (kubernetes.io, Manage HugePages)."
            )
    return remarks
