"""``pgdyno apply``: carry out the plan, with a receipt for every change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click

from pgdyno.cli._server_options import (
    StatedFigures,
    changing_options,
    figures_options,
    layers_option,
    lever_option,
    parse_layers,
    require_known_levers,
    require_machine_layers,
    unmeasured_option,
)
from pgdyno.cli.output import echo, json_option, print_json


@click.command(
    name="apply",
    epilog="\b\nExamples:\n"
    "  pgdyno apply --dsn service=production --dry-run\n"
    "  pgdyno apply --dsn service=production --layers application,system --dry-run\n"
    "  pgdyno apply --dsn service=production --layers application,system --persist\n"
    "  pgdyno apply --dsn service=production --allow-restart"
    " --restart-command 'systemctl restart postgresql@17-main'",
)
@changing_options
@figures_options
@layers_option
@lever_option
@unmeasured_option
@click.option(
    "--persist",
    "is_persisted",
    is_flag=True,
    help="Keep kernel changes across reboots, with files for sysctl.d, udev and tmpfiles.d.",
)
@json_option
def command(
    *,
    dsn: str | None,
    is_dry_run: bool,
    allow_restart: bool,
    restart_command: str | None,
    is_standby_order_kept: bool,
    layers: str,
    levers: tuple[str, ...],
    with_unmeasured: bool,
    is_persisted: bool,
    is_json: bool,
    **figures: Any,
) -> None:
    """Apply the plan that pgdyno advise shows: all or nothing.

    Before each change, the present value is written to the journal; pgdyno revert restores it. The role must
    be a superuser, or have the ALTER SYSTEM privilege on the settings concerned. With --layers
    application,system kernel parameters are changed too, until the next reboot. This needs root; other users
    skip it. --persist keeps kernel changes across reboots, including those of an earlier apply that are still
    in effect. A revert also removes the files of --persist.
    """
    from pgdyno.apply.apply_advice import ApplyAdvice, apply_request
    from pgdyno.apply.apply_plan import apply_plan, preview_apply
    from pgdyno.apply.host_state import this_host
    from pgdyno.apply.journal_text import apply_text
    from pgdyno.base.facts import to_document
    from pgdyno.builds.switching.server_access import server_access
    from pgdyno.measure.awake import with_proven_polling

    require_known_levers(levers)
    if with_unmeasured:
        require_machine_layers(parse_layers(layers), levers)
    request = apply_request(
        ApplyAdvice(
            dsn,
            StatedFigures(**figures).parsed(),
            allow_restart,
            is_standby_order_kept,
            parse_layers(layers),
            is_persisted,
            levers,
            with_unmeasured,
        )
    )
    if not is_dry_run:
        request = replace(request, plan=with_proven_polling(request.plan, this_host()))
    access = server_access(dsn, restart_command)
    result = (preview_apply if is_dry_run else apply_plan)(access, request)
    if is_json:
        print_json({"result": to_document(result)})
    else:
        echo(apply_text(result), nl=False)
