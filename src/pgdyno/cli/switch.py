"""``pgdyno switch``: run a server with another build."""

from __future__ import annotations

from pathlib import Path

import click

from pgdyno.base.errors import UsageError
from pgdyno.cli._server_options import pgdata_option, require_one_server, restarting_options
from pgdyno.cli.output import echo, json_option, open_progress, print_json


@click.command(
    name="switch",
    epilog="\b\nExamples:\n"
    "  pgdyno switch --pgdata /var/lib/postgresql/18/main --to built --dry-run\n"
    "  pgdyno switch --dsn service=production --to built --allow-restart"
    " --restart-command 'systemctl restart postgresql@18-main'\n"
    "  pgdyno switch --pgdata /srv/pg --to built --link /opt/postgresql --allow-restart"
    " --restart-command 'systemctl restart postgresql'",
)
@click.option("--to", required=True, metavar="SERVER", help="A server of pgdyno server list, or a prefix.")
@pgdata_option("The running server's data directory on this host, instead of --dsn.")
@click.option(
    "--link",
    type=click.Path(path_type=Path),
    metavar="LINK",
    help="Symbolic link to a prefix, through which the server is started. [default: Debian's pg_ctl.conf]",
)
@click.option("--patched", is_flag=True, help="Allow a build with patches: pgdyno build --patch.")
@restarting_options
@json_option
def command(
    *,
    to: str,
    pgdata: Path | None,
    link: Path | None,
    patched: bool,
    dsn: str | None,
    is_dry_run: bool,
    allow_restart: bool,
    restart_command: str | None,
    is_json: bool,
) -> None:
    """Run a server with another build of PostgreSQL.

    The server is restarted, and the programs of --to SERVER then run its data. Before that, a scratch server
    of those programs with the real server's settings verifies compatibility: the same major version and no
    older minor release, the same on-disk layout, each extension in its version, all libraries and
    dictionaries, compression, authentication methods, SSL, the same ICU. Anything missing is listed, and
    nothing is changed. A patched PostgreSQL requires --patched, and is refused if the server uses libraries
    that were not built with it.

    The data is not changed. The choice of programs is one line of Debian's pg_ctl.conf, or a symbolic link,
    with a receipt; pgdyno revert undoes it. If the server does not start, the command starts it again with
    its former programs.
    """
    from pgdyno.apply.journal_text import apply_text
    from pgdyno.base.facts import to_document
    from pgdyno.builds.switching.server_access import server_access
    from pgdyno.builds.switching.switch import SwitchRequest, switch

    if dsn is None and pgdata is None:
        raise UsageError("no server was named", hint="--dsn 'service=production', or --pgdata DIR")
    require_one_server(dsn, pgdata, is_embedded=False)
    request = SwitchRequest(to, link, allow_restart, is_dry_run, patched)
    progress = open_progress()
    try:
        result = switch(server_access(dsn, restart_command, pgdata), request, progress)
    finally:
        progress.close()
    if is_json:
        print_json({"result": to_document(result)})
    else:
        echo(apply_text(result), nl=False)
