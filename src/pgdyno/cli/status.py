"""``pgdyno status``: show the applied changes."""

from __future__ import annotations

from pathlib import Path

import click

from pgdyno.cli._server_options import pgdata_option, require_one_server
from pgdyno.cli.output import echo, json_option, print_json


@click.command(name="status")
@click.option("--dsn", metavar="DSN", help="Also read the present values of this server's changes.")
@pgdata_option("Like --dsn, for the server of a data directory on this host.")
@json_option
def command(*, dsn: str | None, pgdata: Path | None, is_json: bool) -> None:
    """Show the changes that are not yet reverted.

    Other journals on this host are also listed. Scratch servers left by a killed pgdyno are stopped.
    """
    from pgdyno.apply.journal_text import status_text
    from pgdyno.apply.status import journal_status, server_status
    from pgdyno.base.facts import to_document
    from pgdyno.builds.switching.server_access import server_access
    from pgdyno.postgres.process.local_machine import remove_orphans

    require_one_server(dsn, pgdata, is_embedded=False)
    remove_orphans()
    access = server_access(dsn, data_directory=pgdata)
    report = journal_status(access) if dsn is None and pgdata is None else server_status(access)
    if is_json:
        print_json({"status": to_document(report)})
    else:
        echo(status_text(report), nl=False)
