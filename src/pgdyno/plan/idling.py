"""A plan without how CPUs idle."""

from __future__ import annotations

from pgdyno.host.awake import idling_files
from pgdyno.model.plans.plan import Plan


def without_idling(plan: Plan) -> Plan:
    """Return the plan without how CPUs idle, where the measurement decides that for all servers."""
    return plan.without_keys(idling_files(plan.values))
