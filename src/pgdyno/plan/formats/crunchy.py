"""Crunchy's operator: Patroni's dynamic configuration in a PostgresCluster.

Source: the operator's source code, internal/postgres (parameters.go, huge_pages.go) and its API types.
"""

from __future__ import annotations

from pgdyno.model.plans.plan import Plan
from pgdyno.plan.formats._contract import Format
from pgdyno.plan.formats._kubernetes import Operator, fragment
from pgdyno.postgres.server import Server

FORMAT = Format("crunchy", "Crunchy's PostgresCluster, a fragment of the manifest")
_OPERATOR = Operator(
    target="crunchy",
    resource="postgresclusters.postgres-operator.crunchydata.com",
    path=("spec", "patroni", "dynamicConfiguration", "postgresql", "parameters"),
    resources="each of spec.instances: resources",
    restart="The operator restarts pods for settings that need it. It sets huge_pages itself: try if an "
    "instance requests huge pages, else off.",
)


def render(plan: Plan, server: Server) -> str:
    """Return the fragment. Raises: SettingError for a setting that the server does not know."""
    return fragment(plan, server, _OPERATOR)
