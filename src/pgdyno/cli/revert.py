"""``pgdyno revert``: restore the original values."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pgdyno.cli._server_options import changing_options, pgdata_option
from pgdyno.cli.output import echo, json_option, print_json

_STILL_CHANGED = 3  # exit code


@click.command(
    name="revert",
    epilog="\b\nExamples:\n"
    "  pgdyno revert --dsn service=production\n"
    "  pgdyno revert --dsn service=production --all --allow-restart"
    " --restart-command 'systemctl restart postgresql@17-main'\n"
    "  pgdyno revert --pgdata /var/lib/postgresql/17/main",
)
@changing_options
@pgdata_option("The server's data directory on this host, if it is down and --dsn does not identify it.")
@click.option("--all", "is_all", is_flag=True, help="Undo all applies, not only the last one.")
@click.option(
    "--drifted",
    type=click.Choice(["skip", "overwrite", "keep"]),
    default="skip",
    show_default=True,
    help="What to do with a setting that was changed after apply.",
)
@click.option(
    "--host-only",
    is_flag=True,
    help="Undo only the changes to this machine, without connecting to a server. This is the default if no "
    "server is named and all changes are from killed measurements or from setup.",
)
@json_option
def command(
    *,
    dsn: str | None,
    pgdata: Path | None,
    is_dry_run: bool,
    allow_restart: bool,
    restart_command: str | None,
    is_standby_order_kept: bool,
    is_all: bool,
    drifted: str,
    host_only: bool,
    is_json: bool,
) -> None:
    """Undo the last apply, or all of them. Safe to repeat.

    Restores the original values, even if apply or revert was killed at any point. The server may be down if
    its files are readable: name it with the same --dsn text as for apply, or with --pgdata. No server is
    needed to undo changes that a killed measurement left on the machine. Scratch servers left by a killed
    pgdyno are stopped. With --allow-restart the server is restarted with apply's restart command, unless
    --restart-command names another one.
    """
    from pgdyno.apply.journal_text import revert_text
    from pgdyno.apply.revert import RevertRequest, preview_revert, revert
    from pgdyno.apply.revert_host import affects_only_host, preview_revert_host, revert_host
    from pgdyno.base.facts import to_document
    from pgdyno.builds.switching.server_access import server_access
    from pgdyno.model.plans.journal import OnDrift
    from pgdyno.postgres.process.local_machine import remove_orphans

    if not is_dry_run:
        remove_orphans()
    request = RevertRequest(
        is_all=is_all,
        allow_restart=allow_restart,
        on_drift=OnDrift(drifted),
        is_standby_order_kept=is_standby_order_kept,
    )
    access = server_access(dsn, restart_command, pgdata)
    if host_only or (dsn is None and pgdata is None and affects_only_host(access)):
        result = (preview_revert_host if is_dry_run else revert_host)(access, request)
    else:
        result = (preview_revert if is_dry_run else revert)(access, request)
    if is_json:
        print_json({"result": to_document(result)})
    else:
        echo(revert_text(result), nl=False)
    if not result.is_complete:
        sys.exit(_STILL_CHANGED)
