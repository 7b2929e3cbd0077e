"""Google Cloud SQL for PostgreSQL: a script that sets database flags with gcloud.

The command replaces all flags of an instance: the script's arguments are the flags to keep. Numbers are in
base units. Sources: Cloud SQL's documentation, "Configure database flags"; gcloud topic escaping.
"""

from __future__ import annotations

from pgdyno.model.plans.plan import Plan
from pgdyno.plan.formats._contract import Format
from pgdyno.plan.formats._expressible import held
from pgdyno.plan.formats._script import Parameter, Provider, script
from pgdyno.postgres.server import Server

FORMAT = Format("cloudsql", "Google Cloud SQL database flags, by gcloud")
_SEPARATOR = ";"


def _word(parameter: Parameter) -> str:
    """Return name=value. Raises: FormatError for a value that contains gcloud's separator."""
    return held(parameter.assignment(), "gcloud's list of flags", _SEPARATOR)


_PROVIDER = Provider(
    target="cloudsql",
    head=(
        "Run: bash FILE INSTANCE [NAME=VALUE …], with every present flag of the instance that must be kept:",
        "gcloud resets flags that are not listed, and may restart the instance.",
        "Present flags: gcloud sql instances describe INSTANCE --format='yaml(settings.databaseFlags)'",
        "Undo: set the former flags and values with gcloud; if none were set, use --clear-database-flags.",
    ),
    arguments="instance=${1:?name the instance}\nshift",
    word=_word,
    more='"$@"',
    command=(
        '((${#parameters[@]})) || { echo "no flag to set" >&2; exit 1; }\n'
        "# ^;^ makes the semicolon gcloud's separator, since a value may have commas.\n"
        'gcloud sql instances patch "$instance" --database-flags="^;^$(IFS=\';\' && echo "${parameters[*]}")"'
    ),
)


def render(plan: Plan, server: Server) -> str:
    """Return the script. Raises: SettingError for a setting that the server does not know."""
    return script(plan, server, _PROVIDER)
