"""``pgdyno cell``: a server's host and its load hosts."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pgdyno.base import numbers
from pgdyno.base.errors import UsageError
from pgdyno.cli.output import echo, json_option, open_progress, print_json
from pgdyno.cli.quantities import duration

_WIDTH = 110
_MOST_LIMIT_S = 3600.0


@click.group(name="cell")
def command() -> None:
    """Use several machines: a server's host and load hosts."""


@command.command(
    name="check",
    epilog="\b\nExamples:\n  pgdyno cell check\n  pgdyno cell check --cell lab.toml --limit 1m --json\n"
    "  pgdyno cell check --cell inventory.ini",
)
@click.option(
    "--cell",
    "file",
    type=click.Path(path_type=Path),
    default=Path("hosts.toml"),
    show_default=True,
    metavar="FILE",
    help="The hosts and their roles, or an Ansible inventory (docs/guides/two-machines.md).",
)
@click.option(
    "--limit",
    "limit_s",
    callback=duration,
    default="30s",
    show_default=True,
    metavar="TIME",
    help="How long to wait for a host to respond.",
)
@json_option
def check(*, file: Path, limit_s: float, is_json: bool) -> None:
    """Check all hosts of a cell, and list the next steps.

    Each host is reached by ssh with your own configuration and keys. A host with an unknown key is refused
    (for jump hosts, your configuration decides), and ssh never prompts for a password. A small Python
    program is sent through the connection and reports clock, CPUs, kernel, PostgreSQL, privileges, free disk
    and wake-up cost. Then each load host opens one TCP connection to the server's host for 1.5 seconds, to
    measure the network. Nothing is installed, and nothing remains on the hosts.

    Exit code 1 means that the cell cannot be used yet.
    """
    from pgdyno.remote.cell_text import cell_text
    from pgdyno.remote.cells.check import check_cell
    from pgdyno.remote.inventory import given_cell

    if limit_s > _MOST_LIMIT_S:
        raise UsageError(
            f"--limit is at most {numbers.duration(_MOST_LIMIT_S)}, not {numbers.duration(limit_s)}",
            hint="a usable host responds within seconds; the default is " + numbers.duration(30),
        )
    cell = given_cell(file)
    progress = open_progress()
    try:
        checked = check_cell(cell, limit_s, progress)
    finally:
        progress.close()
    if is_json:
        print_json({"check": checked})
    else:
        echo(cell_text(checked, _WIDTH), nl=False)
    sys.exit(0 if checked.is_usable else 1)


@command.command(name="carried", hidden=True)
@click.argument("greeting")
def carried(greeting: str) -> None:
    """Run the command that pgdyno on another machine sends through ssh."""
    from pgdyno import __version__
    from pgdyno.remote.forwarded_command import run_carried

    echo(f"{greeting}\n{__version__}")
    sys.stdout.flush()
    sys.exit(run_carried(*(stream.fileno() for stream in (sys.stdin, sys.stdout, sys.stderr))))
