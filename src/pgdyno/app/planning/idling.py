"""A plan without how CPUs idle."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.model.experiments.awake import idling_files
from pgdyno.model.plans.plan import Plan


def without_idling(plan: Plan) -> Plan:
    """Return the plan without how CPUs idle, where the measurement decides that for all servers."""
    idling = idling_files(plan.values)
    return replace(plan, lines=tuple(line for line in plan.lines if line.change.key not in idling))
