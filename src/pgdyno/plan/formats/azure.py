"""Azure Database for PostgreSQL: a script that sets server parameters with the Azure CLI.

Numbers are in PostgreSQL's base units. Source: Microsoft Learn, "az postgres flexible-server parameter".
"""

from __future__ import annotations

from pgdyno.model.plans.plan import Plan
from pgdyno.plan.formats._contract import Format
from pgdyno.plan.formats._expressible import refusal
from pgdyno.plan.formats._script import Parameter, Provider, script
from pgdyno.postgres.server import Server

FORMAT = Format("azure", "Azure Database for PostgreSQL, by the Azure command line")


def _word(parameter: Parameter) -> str:
    """Return name=value. Raises: FormatError for a value that begins with @: az would read it from a file."""
    if parameter.value.startswith("@"):
        raise refusal(parameter.value, "a command of az", "it begins with @, which names a file there")
    return parameter.assignment()


_PROVIDER = Provider(
    target="azure",
    head=(
        "Run: bash FILE RESOURCE_GROUP SERVER, with a flexible server.",
        "Then, for changes that need a restart:",
        "az postgres flexible-server restart -g RESOURCE_GROUP -n SERVER",
        "Undo: run it with the former values named below.",
        "Parameters that cannot be changed:",
        "az postgres flexible-server parameter list -g RESOURCE_GROUP -s SERVER",
        "with --query '[?isReadOnly].name'",
    ),
    arguments="group=${1:?name the resource group}\nserver=${2:?name the server}",
    word=_word,
    command=(
        'for parameter in "${parameters[@]}"; do\n'
        '  az postgres flexible-server parameter set --resource-group "$group" --server-name "$server" \\\n'
        '    --name "${parameter%%=*}" --value "${parameter#*=}"\n'
        "done"
    ),
)


def render(plan: Plan, server: Server) -> str:
    """Return the script. Raises: SettingError for a setting that the server does not know."""
    return script(plan, server, _PROVIDER)
