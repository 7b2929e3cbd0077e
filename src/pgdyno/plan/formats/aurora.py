"""Amazon Aurora PostgreSQL: a script that changes a cluster parameter group with the AWS CLI."""

from __future__ import annotations

from pgdyno.model.plans.plan import Plan
from pgdyno.plan.formats._amazon import parameter_groups
from pgdyno.plan.formats._contract import Format
from pgdyno.plan.formats._script import script
from pgdyno.postgres.server import Server

FORMAT = Format("aurora", "Amazon Aurora cluster parameter group, by the AWS command line")
_PROVIDER = parameter_groups(
    "db-cluster", "aurora", "aws rds reboot-db-instance --db-instance-identifier INSTANCE, of each instance"
)


def render(plan: Plan, server: Server) -> str:
    """Return the script. Raises: SettingError for a setting that the server does not know."""
    return script(plan, server, _PROVIDER)
