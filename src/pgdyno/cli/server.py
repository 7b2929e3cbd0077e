"""``pgdyno server``: the PostgreSQL installations that variants can name."""

from __future__ import annotations

import click

from pgdyno.cli.output import json_option, print_json


@click.group(name="server")
def command() -> None:
    """PostgreSQL installations on this host that a variant can name before its "@"."""


@command.command(name="list")
@json_option
def list_(*, is_json: bool) -> None:
    """List them; any other is named by its prefix, as in pgdyno compare /opt/pg18@default."""
    from pgdyno.app.servers import list_servers

    servers = list_servers()
    if is_json:
        print_json({"servers": [vars(server) for server in servers]})
        return
    for server in servers:
        click.echo(f"{server.name:14} {server.version:8} {server.bin_directory}")
    if not servers:
        click.echo("none found: pip install 'pgdyno[pg]' brings one, and any prefix can be named by its path")
