"""Zalando's operator: ``spec.postgresql.parameters`` of a postgresql resource.

Source: the operator's documentation, "Cluster manifest reference".
"""

from __future__ import annotations

from pgdyno.model.plans.plan import Plan
from pgdyno.plan.formats._contract import Format
from pgdyno.plan.formats._kubernetes import Operator, fragment
from pgdyno.postgres.server import Server

FORMAT = Format("zalando", "Zalando's postgresql resource, a fragment of the manifest")
_OPERATOR = Operator(
    target="zalando",
    resource="postgresqls.acid.zalan.do",
    path=("spec", "postgresql", "parameters"),
    resources="spec.resources",
    restart="The operator passes them to Patroni, and restarts pods for settings that need it.",
)


def render(plan: Plan, server: Server) -> str:
    """Return the fragment. Raises: SettingError for a setting that the server does not know."""
    return fragment(plan, server, _OPERATOR)
