"""Options of commands that change a server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

Decorated = TypeVar("Decorated", bound=Callable[..., Any])

restart_command_option = click.option(
    "--restart-command",
    metavar="COMMAND",
    help="Command that restarts the server, run without a shell: 'systemctl restart postgresql@17-main'.",
)
standbys_option = click.option(
    "--standbys-done",
    "is_standby_order_kept",
    is_flag=True,
    help="Confirm that the standbys already have the raised limits, or the primary the lowered ones.",
)
_RESTARTING = (
    click.option(
        "--dsn", metavar="DSN", help="The server: key=value pairs, a URI or service=…, as libpq takes."
    ),
    click.option("--dry-run", "is_dry_run", is_flag=True, help="Show the changes without making them."),
    click.option("--allow-restart", is_flag=True, help="Restart the server if a change needs it."),
    restart_command_option,
)


def changing_options(command: Decorated) -> Decorated:
    """Add the options common to apply and revert."""
    return restarting_options(standbys_option(command))


def restarting_options(command: Decorated) -> Decorated:
    """Add the options for restarting a server: its DSN, the permission and the command."""
    for option in reversed(_RESTARTING):
        command = option(command)
    return command
