"""CloudNativePG: ``spec.postgresql.parameters`` of a Cluster.

Source: CloudNativePG's documentation, "PostgreSQL Configuration" and "Resource management".
"""

from __future__ import annotations

from pgdyno.model.plans.plan import Plan
from pgdyno.plan.formats._contract import Format
from pgdyno.plan.formats._kubernetes import Operator, fragment
from pgdyno.postgres.server import Server

FORMAT = Format("cnpg", "CloudNativePG Cluster, a fragment of the manifest")
_OPERATOR = Operator(
    target="cnpg",
    resource="clusters.postgresql.cnpg.io",
    path=("spec", "postgresql", "parameters"),
    resources="spec.resources",
    restart="The operator reloads, and restarts pods one by one for settings that need it.",
)


def render(plan: Plan, server: Server) -> str:
    """Return the fragment. Raises: SettingError for a setting that the server does not know."""
    return fragment(plan, server, _OPERATOR)
