"""The whole plan as one JSON document, for programs."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from pgdyno.base.text import escaped_json
from pgdyno.model.plans.plan import REFUSED_ABOVE, MemoryProof, Plan
from pgdyno.plan.formats._contract import Format
from pgdyno.postgres.server import Server

FORMAT = Format("json", "the whole plan as one JSON document")
SCHEMA_VERSION = 1


def render(plan: Plan, server: Server) -> str:
    """Return the document; ``memory_proof`` is null where no memory limit is known."""
    text = json.dumps(document(plan, server), indent=2, ensure_ascii=False)
    return escaped_json(text) + "\n"


def document(plan: Plan, server: Server) -> dict[str, Any]:
    """Return the plan as JSON-able data."""
    return {
        "schema_version": SCHEMA_VERSION,
        "server": {"version": server.version, "version_num": server.version_num},
        "needs_restart": plan.needs_restart,
        "settings": plan.settings,
        "lines": [
            {
                **dataclasses.asdict(line.change),
                "layer": line.layer,
                "reason": line.reason,
                "evidence": line.evidence,
                "risk": line.risk,
                "undo": line.undo,
            }
            for line in plan.lines
        ],
        "unmeasured": [
            {**dataclasses.asdict(line.change), "layer": line.layer, "reason": line.reason}
            for line in plan.unmeasured
        ],
        "skipped": [dataclasses.asdict(skipped) for skipped in plan.skipped],
        "findings": [dataclasses.asdict(finding) for finding in plan.findings],
        "memory_proof": None if plan.memory_proof is None else _proof(plan.memory_proof),
    }


def _proof(proof: MemoryProof) -> dict[str, Any]:
    return {
        "items": [dataclasses.asdict(item) for item in proof.items],
        "total_bytes": proof.total_bytes,
        "limit_bytes": proof.limit_bytes,
        "limit_source": proof.limit_source,
        "share": round(proof.share, 4),
        "refused_above": REFUSED_ABOVE,
    }
