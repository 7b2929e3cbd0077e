"""Parameter groups, common to Amazon RDS and Aurora.

Numbers are in PostgreSQL's base units, Booleans are 0 and 1, and a request has up to 20 parameters. Sources:
Amazon RDS User Guide, "Working with parameters on your RDS for PostgreSQL DB instance"; Amazon RDS API
Reference, "ModifyDBParameterGroup".
"""

from __future__ import annotations

import json

from pgdyno.plan.formats._script import Parameter, Provider

ON, OFF = "1", "0"
PER_REQUEST = 20


def apply_method(parameter: Parameter) -> str:
    """Return the ApplyMethod of a change; changes that need a restart are never immediate."""
    return "pending-reboot" if parameter.needs_restart else "immediate"


def parameter_groups(kind: str, target: str, reboot: str) -> Provider:
    """Return the commands for a parameter group; ``kind`` is ``db`` or ``db-cluster``."""
    modify = f"aws rds modify-{kind}-parameter-group --{kind}-parameter-group-name"
    return Provider(
        target=target,
        head=(
            "Run: bash FILE PARAMETER_GROUP, with a custom group: the default groups cannot be changed.",
            f"Changes that need a restart wait for: {reboot}",
            "Undo: run it with the former values named below, or assign the former group again.",
        ),
        arguments="group=${1:?name the parameter group}",
        word=_word,
        command=(
            f"for ((i = 0; i < ${{#parameters[@]}}; i += {PER_REQUEST})); do\n"
            f'  {modify} "$group" --parameters "${{parameters[@]:i:{PER_REQUEST}}}"\n'
            "done"
        ),
        on=ON,
        off=OFF,
    )


def _word(parameter: Parameter) -> str:
    """Return the parameter as JSON, in which a value may contain commas."""
    return json.dumps(
        {
            "ParameterName": parameter.name,
            "ParameterValue": parameter.value,
            "ApplyMethod": apply_method(parameter),
        }
    )
